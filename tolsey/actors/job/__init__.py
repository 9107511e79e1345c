"""The job actor."""

KIND = "job"
