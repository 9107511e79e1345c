"""Texts of a launch: the standard ones, and those that a language model puts into a brand's voice."""
