"""The commerce platform's Admin API: calls within its costs, its orders, its subscriptions."""
