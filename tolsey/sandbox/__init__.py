"""Local stand-ins of other people's services, over real HTTP, that behave as documented."""
