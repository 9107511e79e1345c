"""One account of the processor: what it holds, who may ask it, and whom it tells."""
