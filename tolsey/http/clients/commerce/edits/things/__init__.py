"""What a launch makes in a shop: for each kind of thing how it is found, made and set."""
