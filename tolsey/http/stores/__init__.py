"""Stores, and their connections to shops."""
