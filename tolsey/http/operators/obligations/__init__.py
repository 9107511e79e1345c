"""What the service owes shops and people by law, and what it lets go of by age."""
