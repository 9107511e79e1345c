"""How long rows stay: what of each owner is exported, erased and forgotten, as their tables declare it."""
