"""A business for sale as it is written down: its listing, and its revenue."""
