"""How actors live: mailboxes, turns, commits, timers. Knows nothing of commerce."""
