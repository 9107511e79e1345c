"""What is changed in a shop, and read as it is now: a class for each kind of edit, with its documents."""
