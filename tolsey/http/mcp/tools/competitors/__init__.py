"""Tools about the storefronts that a store competes with."""
