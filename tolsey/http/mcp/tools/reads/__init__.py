"""Tools that read what the service keeps of a store."""
