"""Shops of the pool: handed out to merchants, and watched by operators."""
