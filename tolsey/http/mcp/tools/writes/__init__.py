"""Tools that change something: what they take, the plan they show, the operation they become."""
