"""What becomes of a sale: orders, what is sent and given back, subscriptions, and what lowers a price."""
