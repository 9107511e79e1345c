"""The job that looks how the service does, opens incidents, and raises alarms."""
