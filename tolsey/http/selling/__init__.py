"""A business for sale over HTTP: where its revenue is read, and what is said of it."""
