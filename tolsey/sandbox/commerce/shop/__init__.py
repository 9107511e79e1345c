"""One shop of the platform: what it holds, who may read it, and what the app keeps in it."""
