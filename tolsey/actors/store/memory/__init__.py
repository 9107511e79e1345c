"""What is remembered of a store, by whom, and who may write over it."""
