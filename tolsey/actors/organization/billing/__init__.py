"""What an organization pays for: what the processor says of it, and what comes of that."""
