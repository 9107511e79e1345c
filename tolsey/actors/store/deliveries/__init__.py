"""What the platform delivers of a shop: read, put on record, kept."""
