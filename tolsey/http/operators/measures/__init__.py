"""What machines that watch the service are told: health and metrics."""
