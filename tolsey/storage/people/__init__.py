"""SQL for people: users and organizations, who belongs to them, passwords and sessions."""
