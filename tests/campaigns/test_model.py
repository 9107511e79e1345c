"""The model of the disk and the real commit statement, held against each other."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.campaigns.model import Disk
from tests.runtime.counter import Claim, CounterRow, Entry
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.turns import ActorPart, Batch, OutboxRow, TurnPart
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal

KEYS = "abcd"
BATCHES = 60


class Writer:
    """Draws batches: mostly sound ones, some of a stale owner, a lost race, a repeat."""

    def __init__(self, seed: int, disk: Disk) -> None:
        self.luck = random.Random(seed)  # noqa: S311 - it is to be predictable
        self.disk = disk
        self.count = 0

    def batch(self) -> Batch:
        batch, free, waiting = Batch(), list("uvwxyz"), list(self.disk.outbox)
        self.luck.shuffle(free)
        self.luck.shuffle(waiting)
        for at, key in enumerate(self.luck.sample(KEYS, self.luck.randint(1, len(KEYS)))):
            slot, base = slot_of(key), self.disk.versions.get(("counter", key), 0)
            epoch = self.disk.epochs[slot] - (self.luck.random() < 0.08)
            base = max(0, base + self.luck.choice((0, 0, 0, 0, 0, 0, 0, 0, -1, 1)))
            row = CounterRow(key, self.luck.randint(0, 99))
            batch.actors.append(ActorPart("counter", key, slot, epoch, base, (row,)))
            for _ in range(self.luck.randint(1, 4)):
                batch.turns.append(self._turn(at, key, free, waiting))
        self.luck.shuffle(batch.turns)
        return batch

    def _turn(self, at: int, key: str, free: list[str], waiting: list[str]) -> TurnPart:
        self.count += 1
        records: list[Any] = [Entry(key, f"entry {self.count}", 1)]
        if free and self.luck.random() < 0.25:
            records.append(Claim(key, free.pop()))
        if self.luck.random() < 0.4:
            name = f"row {self.luck.randint(1, 30)}"
            now = datetime.now(UTC)
            records.append(
                OutboxRow(
                    key=name,
                    slot=1,
                    kind="counter",
                    actor_key=key,
                    name="Add",
                    payload="{}",
                    due_at=now,
                )
            )
        consumes = None
        if self.luck.random() < 0.3:
            consumes = waiting.pop() if waiting else f"gone {self.count}"
        voids = self.luck.random() < 0.5
        return TurnPart(at, f"message {self.count}", "Add", voids, consumes, tuple(records))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_model_of_the_disk_does_what_the_commit_statement_does(
    database: Database, seed: int
) -> None:
    disk, journal = Disk(), Journal(database)
    disk.epochs = await slots.claim(database, "model")
    writer = Writer(seed, disk)
    met = [0, 0, 0, 0]
    try:
        for _ in range(BATCHES):
            batch = writer.batch()
            modelled, real = disk.commit(batch), await journal.write(batch)
            assert modelled == real
            parts = (real.fenced, real.stale, real.voided, real.duplicates)
            met = [count + bool(part) for count, part in zip(met, parts, strict=True)]
            await same(database, disk)
    finally:
        await journal.close()
    assert all(met)


async def same(database: Database, disk: Disk) -> None:
    async def read(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await database.fetch(sql)]

    versions = await read("SELECT key, version FROM actors ORDER BY key")
    assert versions == sorted((key, version) for (_, key), version in disk.versions.items())
    lines = await read("SELECT key, version, message_id, epoch FROM actor_journal")
    assert sorted(lines) == sorted(
        (key, line.version, line.message_id, line.epoch)
        for (_, key), answered in disk.journal.items()
        for line in answered
    )
    assert await read("SELECT key FROM outbox ORDER BY key") == [
        (key,) for key in sorted(disk.outbox)
    ]
    rows = [row for key, row in disk.rows.items() if key[0] == "test_counters"]
    totals = await read("SELECT key, total FROM test_counters ORDER BY key")
    assert totals == sorted((row.key, row.total) for row in rows)
    claims = sorted(key[1:] for key in disk.rows if key[0] == "test_claims")
    assert await read("SELECT key, claim FROM test_claims ORDER BY key, claim") == claims
    entries = await read("SELECT entry FROM test_entries ORDER BY entry")
    assert entries == sorted((entry.entry,) for entry in disk.appended["test_entries"])
