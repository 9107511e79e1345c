"""Signatures under the documents of a deal: their chains, their turns, and what providers say of them."""
