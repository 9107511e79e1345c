"""What a shop sold before it was connected: how far its import is."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.owners import ID_ALONE, OF_STORE, Belongs, RowOwner
from tolsey.storage.tables import Integer, Personal, stored


class ImportState(StrEnum):
    """How far an import of orders is.

    `stopped` by a person, and `failed` when the shop or the platform did not let it go on: both go on
    from where they were when they are begun again.
    """

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


@stored(
    "order_imports",
    key=("store_id", "shop_domain"),
    newest=("begun_at", "changed_at"),
    belongs=(OF_STORE, Belongs(to=RowOwner.USER, by="begun_by", stays=ID_ALONE)),
    export="orderImports",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderImport:
    """A row of order_imports: the last import of a shop's orders.

    `run` is another each time that it goes on, so that a call of the run before changes nothing.
    `since` is from when on orders are read, None for all; `known_since` and `knows_all` are of the last
    import that was done. `unread` counts orders that are not as the platform documents them.
    """

    store_id: str
    shop_domain: str
    begun_at: datetime
    run: Annotated[int, Integer]
    state: ImportState
    changed_at: datetime
    begun_by: Annotated[str | None, Personal.USER] = None
    since: datetime | None = None
    bulk_export: str | None = None
    exported_at: datetime | None = None
    exports: Annotated[int, Integer] = 0
    expected: int | None = None
    read_bytes: int = 0
    orders: int = 0
    unread: int = 0
    code: str | None = None
    finished_at: datetime | None = None
    known_since: datetime | None = None
    knows_all: bool = False
