"""Deals: access to listings, offers, and the way from a letter of intent to the closing."""
