"""Money as it is written down: credits, what is paid for, who is paid out, what was agreed."""
