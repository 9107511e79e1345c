"""How revenue is proven: read from a shop or an account, worth what its definition says, and moved by its machine."""
