"""A stand-in of the payment processor over real HTTP, for the official client and a browser."""
