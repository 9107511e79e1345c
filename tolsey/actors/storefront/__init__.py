"""The storefront actor: a shop of the public web, by its domain."""

KIND = "storefront"
