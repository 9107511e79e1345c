"""SQL for chat: answers of the model, and what a store's model knows and remembers."""
