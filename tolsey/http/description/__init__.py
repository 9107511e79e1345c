"""What describes the API: `/openapi.json`, and its page for people."""
