"""Who calls, as far as the request itself tells: its session cookie, its address, the queue's signature."""
