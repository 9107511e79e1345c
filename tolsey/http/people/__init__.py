"""People: signing up and in, passwords, sessions, organizations and their members."""
