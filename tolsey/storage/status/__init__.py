"""SQL for how the service does: its parts, its incidents, and who is told."""
