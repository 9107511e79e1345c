"""The outbox: rows that a commit left to be done, read, placed in lanes, delivered and counted."""
