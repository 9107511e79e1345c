"""How connections become requests: what holds for every server that may carry them."""
