"""SQL for what other services send of themselves."""
