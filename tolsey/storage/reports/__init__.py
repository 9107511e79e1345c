"""SQL for what is read of one store at a time: every query is bound to the store that asks."""
