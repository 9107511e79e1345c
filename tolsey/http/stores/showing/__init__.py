"""The pages of one store: how it is, what agents did in it, and its settings."""
