"""What happens without a request: shops trade, the platform fails, and the law asks."""
