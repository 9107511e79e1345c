"""What a store has to forget of a shop because the shop's platform or its people ask for it."""
