"""A stand-in of the commerce platform over real HTTP, for the service's own client."""
