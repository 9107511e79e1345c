"""Listings, deals and what storefronts show of themselves, as people and agents are told of them."""
