"""SQL for a business for sale: its listing, and the dated history of its revenue."""
