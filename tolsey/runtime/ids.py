"""Identifiers: a type prefix and a UUIDv7 (RFC 9562), so that they sort by the time they were made."""

import uuid_utils


def new_id(prefix: str) -> str:
    """Make an id such as `store_0198c0d2a8f37c41b1c4d7a2e5f60913`."""
    return f"{prefix}_{uuid_utils.uuid7().hex}"
