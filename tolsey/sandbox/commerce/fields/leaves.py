"""Readings that several types share."""

from datetime import datetime
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.query.projection import Call, Getter


def when(moment: datetime | None) -> str | None:
    """Write a moment that may be missing."""
    return None if moment is None else instant(moment)


def gid(kind: str) -> Getter:
    """Read a global id of this kind."""
    prefix = f"gid://shopify/{kind}/"
    return lambda value, _: f"{prefix}{value.id}"


def legacy(value: Any, _: Call) -> str:
    """Read the bare number of an id."""
    return str(value.id)
