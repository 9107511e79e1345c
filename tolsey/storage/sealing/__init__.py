"""Secrets at rest: how they are sealed, with which keys, and how keys are changed."""
