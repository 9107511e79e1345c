"""Erasure: of deleted stores, and of what shops and their customers ask to be forgotten."""
