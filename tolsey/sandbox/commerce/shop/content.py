"""Collections and pages as the platform keeps them."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Collection:
    """A collection, and in how many sales channels it is."""

    id: int
    handle: str
    title: str
    description_html: str = ""
    channels: int = 0
    publications: set[int] = field(default_factory=set)


@dataclass(slots=True)
class ContentPage:
    """A page of the online store, seen from a moment on where there is one."""

    id: int
    handle: str
    title: str
    created_at: datetime
    updated_at: datetime
    body: str = ""
    published_at: datetime | None = None
