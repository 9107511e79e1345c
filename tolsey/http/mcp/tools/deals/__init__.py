"""Deals of the organization that a store belongs to, as agents read them."""
