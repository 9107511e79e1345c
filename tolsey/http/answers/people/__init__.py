"""Members, keys, sessions, agents and personal data, as people are told of them."""
