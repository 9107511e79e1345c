"""What the payment processor's events say: each is read into the few facts that money turns on.

Pure: the receiver reads with it when an event arrives, and whoever applies an event restores the
same facts from the row that was kept. No body is kept, only these facts.
"""
