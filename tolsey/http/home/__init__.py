"""What wants whoever is signed in, and where everything of theirs is."""
