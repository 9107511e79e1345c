"""What an organization has written down as files."""
