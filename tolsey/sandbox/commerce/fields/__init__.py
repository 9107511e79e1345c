"""What the fields of the schema answer and change, type by type."""
