"""What people are written: who gets what, how it reads, and how it is sent."""
