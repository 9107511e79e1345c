"""The listing actor."""
