"""Plans, credits, payments and payouts, as people and agents are told of them."""
