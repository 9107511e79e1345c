"""Requests that are sent again: the answer of the first under an `Idempotency-Key`."""
