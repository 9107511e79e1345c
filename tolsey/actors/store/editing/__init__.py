"""Calls that make what agents want changed in a shop."""
