"""Buyers as a store may know them: pseudonyms under a key of its own."""

import hashlib
import hmac

PURPOSE = b"customer-pseudonym:v1"
"""What a store's salt is turned into a key for (rules/shops#customers)."""
PREFIX = "s1:"
LABEL = b"customer:v1:"


def pseudonym(key: bytes, email: str | None, customer_id: int | None) -> str | None:
    """Name a buyer by e-mail address, else by the platform's id; None when neither is known.

    The keyed hash is over the label and the older global digest (rules/shops#customers), so that
    rows which still hold that digest can be brought over.
    """
    if email and (address := email.strip().lower()):
        known = address
    elif customer_id is not None:
        known = f"id:{customer_id}"
    else:
        return None
    return rehashed(key, hashlib.sha256(known.encode()).hexdigest())


def rehashed(key: bytes, digest: str) -> str:
    """Name a buyer by the older global digest of their address: as the address itself would have it."""
    return PREFIX + hmac.digest(key, LABEL + digest.encode(), "sha256").hex()
