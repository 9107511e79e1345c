"""What customers of shops may ask for: to be told what is kept of them, and to be forgotten (rules/shops#erasure)."""
