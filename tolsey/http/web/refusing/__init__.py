"""What is answered instead of success."""
