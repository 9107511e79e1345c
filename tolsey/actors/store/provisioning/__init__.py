"""A shop of our pool that a store was handed, and its transfer to the merchant (rules/launch#dev-stores)."""
