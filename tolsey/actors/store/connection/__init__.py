"""The grant of a store's shop: connected, renewed, lost and left."""
