"""Deliveries from the platforms we depend on, received as raw ASGI."""
