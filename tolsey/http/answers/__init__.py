"""What the service says about a thing, typed: routes return it, and `/openapi.json` describes it."""
