"""The database as the runtime sees it, in memory: journal, versions, epochs, outbox, tables.

The rules are those of the commit statement of `tolsey.storage.runtime.journal`; a test holds the
two against each other. Every access can fail the way a database does, by the luck of a seed.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import tolsey.storage.runtime.journal  # noqa: F401 - says where the outbox rows go
from tests.campaigns.simloop import SimLoop, reply_of
from tolsey.storage.errors import OutcomeUnknown, StorageError, StorageUnavailable
from tolsey.storage.records.runtime.turns import (
    Batch,
    BatchOutcome,
    CallState,
    Known,
    OutboxRow,
    TurnPart,
    Unread,
)
from tolsey.storage.tables import TABLES

Result = TypeVar("Result")

DAWN = datetime(2027, 1, 1, tzinfo=UTC)
GUARDS = frozenset({"fence", "version", "claims", "consumed"})
"""What the commit statement checks; a planted bug switches one off."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the journal."""

    version: int
    message_id: str
    epoch: int


class Disk:
    """What is written down. Survives every process."""

    def __init__(
        self, guards: Iterable[str] = GUARDS, refuses: Callable[[Any], bool] = lambda _: False
    ) -> None:
        self.guards = frozenset(guards)
        self.epochs: dict[int, int] = {}
        self.versions: dict[tuple[str, str], int] = {}
        self.journal: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
        self.rows: dict[tuple[Any, ...], Any] = {}
        """Rows with a key: by table name and key."""
        self.appended: defaultdict[str, list[Any]] = defaultdict(list)
        self.outbox: dict[str, OutboxRow] = {}
        self.ever: dict[str, None] = {}
        """Every key that was ever in the outbox."""
        self.dead: list[OutboxRow] = []
        self.lost: list[OutboxRow] = []
        """Rows that came and went in one statement although they were to stay."""
        self._refuses = refuses

    def claim(self, slots: Iterable[int]) -> dict[int, int]:
        """Take slots under new epochs."""
        for slot in slots:
            self.epochs[slot] = self.epochs.get(slot, 0) + 1
        return {slot: self.epochs[slot] for slot in slots}

    def commit(self, batch: Batch) -> BatchOutcome:
        """Do what the commit statement does: all of what its guards let through, or nothing."""
        actors = batch.actors
        fenced = {i for i, a in enumerate(actors) if self.epochs.get(a.slot, 0) != a.epoch}
        stale = {i for i, a in enumerate(actors) if self.versions.get((a.kind, a.key), 0) != a.base}
        duplicates = {j for j, turn in enumerate(batch.turns) if self._repeated(turn)}
        fenced = fenced if "fence" in self.guards else set()
        stale = stale if "version" in self.guards else set()
        voided = {batch.turns[j].actor for j in duplicates if batch.turns[j].voids}
        lost = fenced | stale | voided
        live = [
            turn
            for j, turn in enumerate(batch.turns)
            if j not in duplicates and turn.actor not in lost
        ]
        shared = [r for i, a in enumerate(actors) if i not in lost for r in a.records]
        records = [*(record for turn in live for record in turn.records), *shared]
        if any(map(self._refuses, records)):
            raise StorageError("a row that its table does not take")
        for turn in live:
            actor = actors[turn.actor]
            id = (actor.kind, actor.key)
            self.versions[id] = self.versions.get(id, 0) + 1
            self.journal[id].append(Line(self.versions[id], turn.message_id, actor.epoch))
        older = {record.key for record in records if not self._insert(record)}
        for turn in live:  # in one statement the rows go after the new ones have come
            if turn.consumes and self.outbox.pop(turn.consumes, None) is not None:
                self._count_lost(live, turn)
        return BatchOutcome(
            fenced=frozenset(fenced),
            stale=frozenset(stale),
            voided=frozenset(voided),
            duplicates=frozenset(duplicates),
            older=frozenset(older),
        )

    def _count_lost(self, live: Sequence[TurnPart], taker: TurnPart) -> None:
        for turn in live[live.index(taker) + 1 :]:
            self.lost += [r for r in turn.records if getattr(r, "key", "") == taker.consumes]

    def _repeated(self, turn: Any) -> bool:
        gone = bool(turn.consumes) and turn.consumes not in self.outbox
        if gone and "consumed" in self.guards:
            return True
        claims = [record for record in turn.records if TABLES[type(record)].claim]
        return "claims" in self.guards and any(_key(claim) in self.rows for claim in claims)

    def _insert(self, record: Any) -> bool:
        """Keep a record; False when it is to follow and another waits under its key."""
        part = TABLES[type(record)]
        if isinstance(record, OutboxRow):
            return self.add(record)
        if part.key:
            self.rows[_key(record)] = record
        else:
            self.appended[part.name].append(record)
        return True

    def add(self, row: OutboxRow) -> bool:
        """Put a row into the outbox unless its key waits there."""
        self.ever[row.key] = None
        if row.key in self.outbox:
            return False
        self.outbox[row.key] = row
        return True


def _key(record: Any) -> tuple[Any, ...]:
    part = TABLES[type(record)]
    return (part.name, *(getattr(record, column) for column in part.key))


class Weather:
    """Which faults come, how often, and how many came; all of it from one seed."""

    KINDS = (
        "write_unavailable",
        "write_lost_before",
        "write_lost_after",
        "write_lost_running",
        "write_slow",
        "settle_unavailable",
        "load_unavailable",
        "outbox_unavailable",
        "outbox_lost_after",
        "effect_failed",
    )

    def __init__(self, seed: int | str) -> None:
        self.luck = random.Random(f"weather {seed}")  # noqa: S311 - it is to be predictable
        self.rates = {
            kind: self.luck.choice((0.05, 0.15, 0.3)) if self.luck.random() < 0.5 else 0.0
            for kind in self.KINDS
        }
        self.hits: Counter[str] = Counter()

    def strikes(self, *kinds: str) -> str | None:
        """Draw whether one of these faults happens now."""
        for kind in kinds:
            if self.rates[kind] and self.luck.random() < self.rates[kind]:
                self.hits[kind] += 1
                return kind
        return None

    def delay(self) -> float:
        """Draw how long a hop takes, in seconds."""
        return self.luck.choice((0.0, 0.0005, 0.001, 0.002, 0.01))

    def clear(self) -> None:
        """No more faults."""
        self.rates = dict.fromkeys(self.KINDS, 0.0)


class Connection:
    """One process's way to the disk: the runtime's CommitLog, OutboxStore and Versions."""

    def __init__(self, disk: Disk, weather: Weather, loop: SimLoop) -> None:
        self._disk = disk
        self._weather = weather
        self._loop = loop
        self._running: list[dict[str, bool]] = []

    def now(self) -> datetime:
        """Tell the time of the database."""
        return DAWN + timedelta(seconds=self._loop.time())

    async def write(self, batch: Batch) -> BatchOutcome:
        """Write a batch, as the journal does."""
        fault = self._weather.strikes(
            "write_unavailable",
            "write_lost_before",
            "write_lost_after",
            "write_lost_running",
            "write_slow",
        )
        await asyncio.sleep(self._weather.delay())
        if fault == "write_unavailable":
            raise StorageUnavailable("simulated")
        if fault == "write_lost_before":
            raise OutcomeUnknown("simulated")
        backend = {"ended": False}
        self._running = [backend]

        def run() -> BatchOutcome:
            if backend["ended"]:
                raise StorageUnavailable("the backend was ended")
            outcome = self._disk.commit(batch)
            self._loop.note(f"commit {len(batch.turns)} {len(outcome.fenced)}")
            return outcome

        delay = 0.3 if fault == "write_slow" else self._weather.delay()
        if fault == "write_lost_running":
            # The connection is gone, the statement is not: it ends later unless it is ended.
            late = asyncio.ensure_future(reply_of("server", 0.1 + 5 * delay, run))
            late.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise OutcomeUnknown("simulated")
        outcome = await reply_of("server", delay, run)
        if fault == "write_lost_after":
            raise OutcomeUnknown("simulated")
        await asyncio.sleep(self._weather.delay())
        return outcome

    async def settle(self, batch: Batch) -> list[bool]:
        """End what still runs, then read back which turns are on disk."""
        await self._reach("settle_unavailable")

        def read() -> list[bool]:
            for backend in self._running:
                backend["ended"] = True
            written = []
            for turn in batch.turns:
                actor = batch.actors[turn.actor]
                # A message that another owner took under its own epoch is not this batch's turn.
                ours = (turn.message_id, actor.epoch)
                lines = self._disk.journal[actor.kind, actor.key][actor.base :]
                written.append(any((line.message_id, line.epoch) == ours for line in lines))
            return written

        return await reply_of("server", self._weather.delay(), read)

    async def versions(self, kind: str, keys: Sequence[str]) -> dict[str, int]:
        """Read how far actors are."""
        await self._reach("load_unavailable")
        known = self._disk.versions
        return await self._soon(lambda: {k: known[kind, k] for k in keys if (kind, k) in known})

    async def rows(self, table: str, keys: Sequence[str]) -> Mapping[str, Any]:
        """Read rows of a table by their key."""
        await self._reach("load_unavailable")
        known = self._disk.rows
        return await self._soon(lambda: {k: known[table, k] for k in keys if (table, k) in known})

    async def due(
        self, limit: int, but: Any, known: Known, slots: Sequence[int] | None = None
    ) -> list[OutboxRow]:
        """Read rows that are due and known, of actors in these slots."""
        await self._reach("outbox_unavailable")
        flying = frozenset(but)

        def read() -> list[OutboxRow]:
            return [
                row
                for row in self._disk.outbox.values()
                if (row.due_at or DAWN) <= self.now()
                and row.key not in flying
                and row.name in known.names
                and row.kind in known.kinds
                and (slots is None or row.slot in slots)
            ][:limit]

        return await self._soon(read)

    async def begin(self, keys: Sequence[str]) -> Mapping[str, CallState]:
        """Note that work on rows begins; answer how far those are that are still there."""
        await self._reach("outbox_unavailable")

        def run() -> dict[str, CallState]:
            rows = self._disk.outbox
            were = {key: rows[key].state for key in keys if key in rows}
            for key in self._count(keys, 1):
                if rows[key].lane is not None:
                    rows[key] = replace(rows[key], state="sent")
            return were

        return await self._answered(await self._soon(run))

    async def give_back(self, keys: Sequence[str]) -> None:
        """Take back that work on rows began."""
        await self._reach("outbox_unavailable")
        await self._soon(lambda: self._count(keys, -1))

    def _count(self, keys: Sequence[str], by: int) -> set[str]:
        here = {key for key in keys if key in self._disk.outbox}
        for key in here:
            row = self._disk.outbox[key]
            interruptions = max(0, row.interruptions + by)
            self._disk.outbox[key] = replace(row, interruptions=interruptions)
        return here

    async def unread(
        self,
        known: Known,  # noqa: ARG002 - the protocol's
        keys: Any,  # noqa: ARG002 - the protocol's
        waited: timedelta,  # noqa: ARG002 - the protocol's
        slots: Sequence[int] | None = None,  # noqa: ARG002 - the protocol's
    ) -> list[Unread]:
        """Count rows that nobody knows; every process here is of one version."""
        await self._reach("outbox_unavailable")
        return []

    async def add(self, rows: Sequence[OutboxRow]) -> int:
        """Keep rows; answer how many were new."""
        await self._reach("outbox_unavailable")
        added = await self._soon(lambda: sum(map(self._disk.add, rows)))
        return await self._answered(added)

    async def replace(self, key: str, rows: Sequence[OutboxRow]) -> None:
        """Take a finished row away and put others in its place."""
        await self._reach("outbox_unavailable")

        def run() -> None:
            if self._disk.outbox.pop(key, None) is not None:
                for row in rows:
                    self._disk.add(row)

        await self._soon(run)
        await self._answered(None)

    async def postpone(self, row: OutboxRow, seconds: float, error: str) -> None:  # noqa: ARG002 - the protocol's
        """Try a row again later, with what it counts by now."""
        await self._reach("outbox_unavailable")

        def run() -> None:
            if row.key in self._disk.outbox:
                self._disk.outbox[row.key] = replace(
                    row, due_at=self.now() + timedelta(seconds=seconds)
                )

        await self._soon(run)
        await self._answered(None)

    async def bury(
        self,
        row: OutboxRow,
        id: str,  # noqa: ARG002 - the protocol's
        error: str,  # noqa: ARG002 - the protocol's
        follow: Sequence[OutboxRow] = (),
        *,
        holds: bool = True,  # noqa: ARG002 - the protocol's
    ) -> None:
        """Move a row to the dead letters, and put what follows in its place."""
        await self._reach("outbox_unavailable")

        def run() -> None:
            if self._disk.outbox.pop(row.key, None) is not None:
                self._disk.dead.append(row)
                for one in follow:
                    self._disk.add(one)

        await self._soon(run)
        await self._answered(None)

    async def _reach(self, *faults: str) -> None:
        await asyncio.sleep(self._weather.delay())
        if self._weather.strikes(*faults):
            raise StorageUnavailable("simulated")

    async def _soon(self, work: Callable[[], Result]) -> Result:
        answer = await reply_of("server", self._weather.delay(), work)
        await asyncio.sleep(self._weather.delay())  # an answer is old news by the time it is here
        return answer

    async def _answered(self, answer: Result) -> Result:
        if self._weather.strikes("outbox_lost_after"):
            raise StorageUnavailable("simulated, after it was done")
        return answer
