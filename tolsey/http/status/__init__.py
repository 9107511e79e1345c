"""The status page: how the service does, what was wrong when, and who is told (rules/service#status)."""
