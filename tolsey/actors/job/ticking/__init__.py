"""The job that moves what waits in stores by itself."""
