"""What a store remembers between turns."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.records.connection import Connection, ShopProfile


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store's parts; each is saved only when it changed.

    `renewing_since` is not saved: a process that dies takes with it those who waited for it.
    """

    store_id: str
    organization_id: str | None = None
    connection: Connection | None = None
    shop: ShopProfile | None = None
    renewing_since: datetime | None = None
