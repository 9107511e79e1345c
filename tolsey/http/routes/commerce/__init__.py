"""Routes of stores: the stores themselves, their connections to shops, their chat."""
