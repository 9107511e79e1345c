"""Shops whose app was removed and that nobody connected again."""
