"""Competitor intelligence: what programs read by an API key."""
