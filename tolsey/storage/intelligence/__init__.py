"""SQL for storefronts of the public web: the registry, their catalogues, and what changed in these."""
