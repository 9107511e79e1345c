"""Discount codes as the platform keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(slots=True)
class Discount:
    """A code, and what it was asked to do."""

    id: int
    code: str
    title: str
    starts_at: datetime
    asked: Mapping[str, Any]
