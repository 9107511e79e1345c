"""The preview of a store's own storefront, at an address that lasts 15 minutes."""
