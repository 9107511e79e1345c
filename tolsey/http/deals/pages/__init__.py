"""Deals as pages: all of one person, one with everything in it, signing, and what an operator decides."""
