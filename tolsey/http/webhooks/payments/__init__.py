"""Events from the payment processor: proven, read, kept once, and answered."""
