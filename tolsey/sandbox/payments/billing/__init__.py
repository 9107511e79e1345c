"""Money that comes again: invoices, subscriptions, and how they change."""
