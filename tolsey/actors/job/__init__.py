"""The job actor."""
