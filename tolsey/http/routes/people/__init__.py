"""Routes of people and their agents: signing up and in, organizations, tokens."""
