"""Stores, their launches, files and memory, as people and agents are told of them."""
