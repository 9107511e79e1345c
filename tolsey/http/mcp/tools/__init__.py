"""What agents can do with a store: tools over its actors and rows, each with its scope and schemas."""
