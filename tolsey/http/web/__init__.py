"""What all routes share: who calls, what may be sent, limits, pages of lists, refusals, the edge."""
