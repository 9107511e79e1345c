"""Services of counters in several processes that share a database and a Redis: parts of a bench."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

from bench import node
from bench.asking import Program
from bench.counter import TABLE
from tolsey.runtime.turns.mailbox import SLOTS, slot_of
from tolsey.storage.migrate import migrate

LEASE_SECONDS = 5.0  # as the service has it when nothing is said
SETTLE_SECONDS = 60.0
POLL_SECONDS = 0.05

Map = dict[int, str | None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the processes of one service meet."""

    database_url: str
    redis_url: str
    keys: str
    folder: Path

    def node(self, *, remote: bool = False) -> Program:
        """Make one of its processes; with `remote` nobody hears of its death from the kernel."""
        given = {
            "database_url": self.database_url,
            "redis_url": self.redis_url,
            "keys": self.keys,
            "lease_seconds": LEASE_SECONDS,
            "remote": remote,
        }
        return Program("bench.node", given, log=self.folder / "node.log")

    @asynccontextmanager
    async def nodes(self, number: int, *, remote: bool = False) -> AsyncIterator[list[Program]]:
        """Run some processes that share the slots among them."""
        async with AsyncExitStack() as stack:
            # One after the other: the first is alone and takes all, the others take their share.
            joined = [
                await stack.enter_async_context(self.node(remote=remote)) for _ in range(number)
            ]
            await settled(joined)
            yield joined

    async def total(self) -> int:
        """Add up what all counters have on disk."""
        return int(await self._ask("SELECT coalesce(sum(total), 0) FROM bench_counters"))

    async def unpin(self) -> None:
        """Let every slot be where it belongs again; the processes see it within some seconds."""
        await self._ask("UPDATE slot_epochs SET pinned_to = NULL RETURNING 1")

    async def _ask(self, statement: str) -> Any:
        connection = await asyncpg.connect(self.database_url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()


async def opened(database_url: str, redis_url: str, folder: Path) -> Cluster:
    """Make an empty database ready for processes of counters."""
    await migrate(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(TABLE)
    finally:
        await connection.close()
    return Cluster(database_url, redis_url, node.keys(), folder)


async def settled(nodes: Sequence[Program]) -> Map:
    """Wait until the slots are shared among these processes, and all of them agree how."""
    wanted = {one.ready for one in nodes}
    async with asyncio.timeout(SETTLE_SECONDS):
        while True:
            maps = [await one.do("holdings") for one in nodes]
            share = Counter(maps[0].values())
            same = all(one == maps[0] for one in maps)
            if same and set(share) == wanted and len(maps[0]) == SLOTS:
                fewest = 0.7 * SLOTS / len(nodes)
                if min(share.values()) > fewest:
                    return {int(slot): owner for slot, owner in maps[0].items()}
            await asyncio.sleep(POLL_SECONDS)


def keys_of(owners: Map, process: str, number: int, prefix: str = "key") -> list[str]:
    """Name counters that a process owns."""
    return list(_keys_of(owners, process, number, prefix))


def _keys_of(owners: Map, process: str, number: int, prefix: str) -> Iterator[str]:
    found = 0
    for n in count():
        if owners[slot_of(f"{prefix}-{n}")] == process:
            yield f"{prefix}-{n}"
            found += 1
            if found == number:
                return
