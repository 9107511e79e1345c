"""Deals about a listing: who may see more of it, what they offer, and how it is handed over."""
