"""A runtime on a real database, with a hand on the door of its journal."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from tests.runtime.counter import Counter
from tests.timing import PATIENCE_SECONDS
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.errors import OutcomeUnknown
from tolsey.storage.records.runtime.turns import Batch, BatchOutcome
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox


class Turnstile:
    """The real journal behind a door: it remembers the batches and can make them wait."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.batches: list[Batch] = []
        self.faults: deque[str] = deque()
        """What becomes of the next writes: `lost before` or `lost after` they took place."""
        self.arrived = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> None:
        self.arrived.clear()
        self._open.clear()

    def reopen(self) -> None:
        self._open.set()

    async def write(self, batch: Batch) -> BatchOutcome:
        self.batches.append(batch)
        self.arrived.set()
        await self._open.wait()
        fault = self.faults.popleft() if self.faults else ""
        if fault == "lost before":
            raise OutcomeUnknown("planted")
        outcome = await self.journal.write(batch)
        if fault == "lost after":
            raise OutcomeUnknown("planted")
        return outcome

    async def settle(self, batch: Batch) -> list[bool]:
        return await self.journal.settle(batch)


class RuntimeOnDisk:
    """What a test holds: the runtime, its kind of actor, its journal, and the database."""

    def __init__(
        self, database: Database, kind: Counter, journal: Turnstile, runtime: Runtime
    ) -> None:
        self.database = database
        self.kind = kind
        self.journal = journal
        self.runtime = runtime
        self.ask = partial(runtime.ask, timeout=PATIENCE_SECONDS)

    async def total(self, key: str) -> int:
        """Read a counter on disk."""
        row = await self.database.fetchrow("SELECT total FROM test_counters WHERE key = $1", key)
        return row["total"] if row else 0

    async def count(self, table: str) -> int:
        """Count the rows of a table."""
        row = await self.database.fetchrow(f"SELECT count(*) AS n FROM {table}")  # noqa: S608
        assert row is not None
        return int(row["n"])

    async def versions(self, key: str) -> list[int]:
        """List the versions that the journal has of a counter."""
        rows = await self.database.fetch(
            "SELECT version FROM actor_journal WHERE key = $1 ORDER BY version", key
        )
        return [row["version"] for row in rows]


@asynccontextmanager
async def running(
    database: Database,
    *,
    journal_on: Database | None = None,
    kinds: tuple[Any, ...] = (),
    **options: Any,
) -> AsyncIterator[RuntimeOnDisk]:
    """Run a runtime; `journal_on` is where its journal connects, if not to the same address."""
    kind, journal = Counter(database), Journal(journal_on or database)
    turnstile = Turnstile(journal)
    if "epochs" not in options:  # to claim them anew would take them from whoever has them
        options["epochs"] = await slots.claim(database, "test")
    options.setdefault("poll_seconds", 0.02)
    runtime = Runtime(
        [kind, *kinds], turnstile, Outbox(database), partial(slots.versions, database), **options
    )
    try:
        async with runtime:
            yield RuntimeOnDisk(database, kind, turnstile, runtime)
    finally:
        await journal.close()
