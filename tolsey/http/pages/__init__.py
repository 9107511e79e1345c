"""Pages and pictures the public sees."""
