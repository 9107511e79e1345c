"""The credits' ledger: how an entry is written, and every decision that writes one."""
