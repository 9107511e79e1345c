"""The payment processor, over its own package: the platform's account, and its sellers'."""
