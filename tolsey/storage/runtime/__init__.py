"""What the runtime stands on: the group commit, its outbox, slots, processes, and what runs."""
