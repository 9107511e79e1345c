"""How many workflows of an organization run at once."""
