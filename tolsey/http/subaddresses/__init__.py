"""The public sub-addresses: each answers for its own surface and for nothing else (rules/service#sub-addresses)."""
