"""What runs, as it is written down: turns on their way to disk, slots, jobs and workflows."""
