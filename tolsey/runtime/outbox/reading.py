"""Reading the rows of the outbox, and telling of those that only another version can read."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog

from tolsey.runtime.codec import decode
from tolsey.runtime.messages import Call, names_read
from tolsey.runtime.outbox.rows import OutboxStore
from tolsey.storage.records.runtime.turns import Known, OutboxRow, Unread

log = structlog.get_logger()

UNREAD_AFTER: Final = timedelta(minutes=10)
LOOK_SECONDS: Final = 30.0
"""How often rows are looked for that have waited so long for a version that knows them."""


class RowReader:
    """Reads rows, and remembers which of them nobody here can read or take."""

    def __init__(
        self, store: OutboxStore, kinds: Mapping[str, Any], handled: Collection[type[Call[Any]]]
    ) -> None:
        self.known = Known(frozenset(names_read()), kinds)
        self.odd: set[str] = set()
        """Rows of classes that are known, but whose shape is not, or what is to be done with them."""
        self.unread: Sequence[Unread] = ()
        """What has waited for long for a version that can read it, as of the last look."""
        self._store = store
        self._handled = handled
        self._look_at = 0.0

    def read(self, row: OutboxRow) -> Any:
        """Read what a row holds; none for what this version does not know, which stays as it is."""
        why = "no one here takes it"
        try:
            value = decode(row.name, row.kind, row.payload)
        except (LookupError, ValueError) as error:
            value, why = None, f"unreadable: {type(error).__name__}"
        if isinstance(value, Call):
            is_taken = type(value) in self._handled
        else:
            kind = self.known.kinds.get(row.kind)
            is_taken = kind is not None and type(value) in kind.turns
        if is_taken:
            return value
        if row.key not in self.odd:
            log.warning("outbox.not_known", key=row.key, name=row.name, kind=row.kind, why=why)
            self.odd.add(row.key)
        return None

    async def look_for_unread(self, owned: Sequence[int] | None) -> None:
        """Tell of what has waited for long: a newer version wrote it, and none of that version is here."""
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        self.unread = await self._store.unread(self.known, self.odd, UNREAD_AFTER, owned)
        for found in self.unread:
            log.error(
                "outbox.unread",
                name=found.name if "." in found.name else f"{found.kind}.{found.name}",
                rows=found.rows,
                waited_seconds=round(found.waited.total_seconds()),
            )
