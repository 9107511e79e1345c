"""How often work on a row was cut off by the end of its process: no attempt, but it is bounded.

That work begins is noted on disk where somebody worked on the row before: so a row that ends
whatever works on it is known by what it leaves. A stop takes its notes back.
"""

import asyncio
from collections.abc import Container, Mapping, Sequence
from typing import Final

import structlog

from tolsey.runtime.outbox.rows import OutboxStore
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.turns import CallState

log = structlog.get_logger()

SUSPECTED_AFTER: Final = 3
"""A row that so many processes ended over is worked on beside no other of its sort, so that the next
end tells which of them it was."""
MOST_INTERRUPTIONS: Final = 8
"""After so many it goes to the dead letters: it ends whatever works on it."""


class Interruptions:
    """The notes of one process that work on rows began."""

    def __init__(self, store: OutboxStore) -> None:
        self._store = store
        self._begun: set[str] = set()
        """The rows that say, or may say, that work on them began."""
        self._beginning: list[str] = []
        self._noted: asyncio.Future[Mapping[str, CallState]]
        """The statement that will note those."""

    def __contains__(self, key: str) -> bool:
        return key in self._begun

    async def begin(self, keys: Sequence[str]) -> Mapping[str, CallState]:
        """Note that work on rows begins; answer how far those are that are still there."""
        self._begun.update(keys)
        there = await self._store.begin(keys)
        self._begun.difference_update(set(keys) - there.keys())
        return there

    async def begin_one(self, key: str) -> CallState | None:
        """Note that work on a row begins, with all that begin at this moment; None: it is gone."""
        self._beginning.append(key)
        if len(self._beginning) == 1:
            self._noted = asyncio.ensure_future(self._begin_together())
        return (await asyncio.shield(self._noted)).get(key)

    async def _begin_together(self) -> Mapping[str, CallState]:
        await asyncio.sleep(0)  # noqa: TID251 - it lets others run, and waits for no time
        keys, self._beginning = self._beginning, []
        return await self.begin(keys)

    def end(self, key: str) -> None:
        """Forget a row whose work ended: what became of it is on disk."""
        self._begun.discard(key)

    async def give_back(self, but: Container[str] = ()) -> None:
        """Take the notes back of rows that are not worked on."""
        keys = [key for key in self._begun if key not in but]
        if keys:
            await self._store.give_back(keys)
            self._begun.difference_update(keys)

    async def stop(self) -> None:
        """Take every note back; what cannot be taken back counts as an interruption."""
        try:
            await self.give_back()
        except StorageError as error:
            log.warning("outbox.not_given_back", rows=len(self._begun), error=str(error))
