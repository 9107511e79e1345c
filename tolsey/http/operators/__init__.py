"""What operators, schedules and the machines that watch the service ask."""
