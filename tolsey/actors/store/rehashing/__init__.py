"""The move of buyers from the older global digest to the pseudonyms of their store and shop."""
