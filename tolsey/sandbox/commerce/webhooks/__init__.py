"""What subscribers are told: bodies as the platform writes them, signed and delivered."""
