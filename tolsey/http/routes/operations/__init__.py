"""Routes of operators, of schedules and of machines that watch the service."""
