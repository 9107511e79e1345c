"""The listing actor."""

KIND = "listing"
