"""Stores and their shops, as their turns write them down."""
