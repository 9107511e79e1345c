"""Kinds of edits: what each does to a thing, how the shop tells that it was made, and what undoes it."""
