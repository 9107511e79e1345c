"""How many processes share the actors: who owns which slots, who is alive, how asks get there."""
