"""What work costs beside time: processor seconds by program, bytes of log, bytes through Redis.

On a machine that a bench shares with its servers, throughput says who got the cores; processor time
for each delivery says how many cores are wanted elsewhere. It is read from /proc, so on Linux only.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import asyncpg
from redis.asyncio import Redis

Reading = dict[str, float]

STATEMENT = "SELECT pg_backend_pid() AS pid, pg_current_wal_lsn() - '0/0' AS wal"


def supported() -> bool:
    """Whether this system says what its processes cost."""
    return Path("/proc/self/stat").exists()


class Meter:
    """Reads what PostgreSQL, Redis and our own processes have cost so far."""

    def __init__(self, database_url: str, redis_url: str | None, root: int) -> None:
        self._database_url = database_url
        self._redis_url = redis_url
        self._root = root
        """Number of the process whose tree is ours."""

    async def read(self) -> Reading:
        """Give the totals now; two readings subtracted are the cost of what lay between."""
        stats = _stats()
        found = {"tolsey": _tree(stats, self._root)}
        connection = await asyncpg.connect(self._database_url)
        try:
            row = await connection.fetchrow(STATEMENT)
            assert row is not None
            postmaster = stats.get(row["pid"]) or _stats()[row["pid"]]
            found["postgresql"] = _tree(stats, postmaster[0])
            found["wal_bytes"] = float(row["wal"])
        finally:
            await connection.close()
        if self._redis_url:
            found |= await self._redis(stats)
        return found

    async def _redis(self, stats: dict[int, tuple[int, float]]) -> Reading:
        redis: Any = Redis.from_url(self._redis_url or "")
        try:
            info = await redis.info()
        finally:
            await redis.aclose()
        return {
            "redis": _tree(stats, int(info["process_id"])),
            "redis_bytes": float(info["total_net_input_bytes"] + info["total_net_output_bytes"]),
        }


class Spending:
    """What each contestant of this process cost for one of what it did, by its own rounds."""

    def __init__(self, database_url: str) -> None:
        self._meter = Meter(database_url, None, os.getpid())
        self._spent: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)

    async def of(self, name: str, count: int, work: Awaitable[float]) -> float:
        """Run so much of a contestant's work; answer what it answers."""
        before, cpu = await self._meter.read(), process_time()
        found = await work
        own, after = process_time() - cpu, await self._meter.read()
        postgresql = after["postgresql"] - before["postgresql"]
        self._spent[name].append((own / count * 1000, postgresql / count * 1000))
        return found

    def lines(self, label: str, names: Sequence[str]) -> list[list[object]]:
        """Give a line for each contestant, in milliseconds, with how its cost stands to the first's."""
        both = {name: median(map(sum, self._spent[name])) for name in names}
        first, *_ = both.values()
        return [
            [
                f"{label} {name}",
                *(median(one[n] for one in self._spent[name]) for n in range(2)),
                both[name],
                f"{both[name] / first:.2f}" if first else "",
            ]
            for name in names
        ]


COLUMNS = ("this process", "PostgreSQL", "both", "to the first")
"""Of the lines of a `Spending`."""


def between(before: Reading, after: Reading, count: float) -> Reading:
    """Give the cost of one of so many."""
    return {name: (after[name] - before[name]) / max(count, 1) for name in after}


def _stats() -> dict[int, tuple[int, float]]:
    """Read the parent of every process and the processor seconds of it and its ended children."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it ended meanwhile
            fields = line.rpartition(")")[2].split()
            found[int(folder.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / tick)
    return found


def _tree(stats: dict[int, tuple[int, float]], root: int) -> float:
    children = defaultdict(list)
    for pid, (parent, _) in stats.items():
        children[parent].append(pid)
    total, waiting = 0.0, [root]
    while waiting:
        pid = waiting.pop()
        total += stats[pid][1] if pid in stats else 0.0
        waiting += children[pid]
    return total
