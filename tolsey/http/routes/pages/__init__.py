"""Routes that answer people in a browser with pages, without a script."""
