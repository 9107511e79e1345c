"""What every store stands on, as each process finds it: PostgreSQL, Redis, clocks, disks, leases."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import orjson

from tolsey.http.answers.operators.diagnosis import CauseAnswer
from tolsey.http.web.context import Service
from tolsey.storage.errors import StorageError

LOOK_SECONDS: Final = 2.0
LOOKS: Final = 3
"""The quickest of so many says how far away PostgreSQL is, and what its clock says."""
SLOW_SECONDS: Final = 0.1
"""A statement that reads nothing takes a millisecond, two where PostgreSQL is in another zone."""
SLOW_COMMIT_SECONDS: Final = 1.0
OFF_SECONDS: Final = 5.0
"""Clocks that are set by a time server are milliseconds apart."""
FULL_BYTES: Final = 256 << 20
FULL_SHARE: Final = 0.03
LATELY_SECONDS: Final = 120.0
"""So long a refusal for want of room is told: nobody says when there is room again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """How one process finds what it stands on; what it could not ask is none."""

    host: str
    database_seconds: float | None
    """How long PostgreSQL takes to read nothing."""
    commit_seconds: float
    """For how long the commit that is under way has not been answered."""
    full_seconds_ago: float | None
    """When PostgreSQL last refused a write for want of room."""
    ahead_of_database_seconds: float | None
    """How far its clock is ahead of PostgreSQL's."""
    ahead_of_redis_seconds: float | None
    is_redis_there: bool
    lease_left_seconds: float
    free_bytes: int
    """What is left of the disk of DATA_DIR."""
    disk_bytes: int


def offer(service: Service) -> None:
    """Let the other processes ask this one what it finds."""
    service.shard.operations["footing"] = partial(_look, service)


async def gather(service: Service) -> Mapping[str, Footing]:
    """Ask every living process; one that keeps silent, or is of the release before, says nothing."""
    told = await service.shard.call_all("footing", seconds=LOOK_SECONDS * 2)
    return {process: Footing(**one) for process, one in told.items() if isinstance(one, dict)}


async def _look(service: Service, _: Any = None) -> dict[str, Any]:
    looked, is_redis_there = await asyncio.gather(_of_database(service), service.cache.ping())
    seconds, ahead = looked
    redis_seconds = service.shard.bus.clock_offset + service.runtime.time.monotonic()
    disk = await asyncio.to_thread(shutil.disk_usage, _existing(service))
    host = next((one.host for one in service.shard.members() if one.id == service.shard.id), "")
    found = Footing(
        host=host,
        database_seconds=seconds,
        commit_seconds=service.runtime.admin.commit_seconds,
        full_seconds_ago=service.database.full_seconds,
        ahead_of_database_seconds=ahead,
        ahead_of_redis_seconds=service.clock().timestamp() - redis_seconds
        if is_redis_there
        else None,
        is_redis_there=is_redis_there,
        lease_left_seconds=service.shard.lease_left_seconds,
        free_bytes=disk.free,
        disk_bytes=disk.total,
    )
    told: dict[str, Any] = orjson.loads(orjson.dumps(found))
    return told


def _existing(service: Service) -> str:
    """Name the folder on DATA_DIR's disk that is there: with servers of one's own it may not be made yet."""
    folder = service.settings.data_dir.absolute()
    return str(next(one for one in (folder, *folder.parents) if one.exists()))


async def _of_database(service: Service) -> tuple[float | None, float | None]:
    """Say how long PostgreSQL takes to read nothing, and how far our clock is ahead of its."""
    time, best = service.runtime.time, None
    try:
        async with time.timeout(LOOK_SECONDS):
            for _ in range(LOOKS):
                began, at = time.monotonic(), service.clock()
                row = await service.database.fetchrow("SELECT clock_timestamp() AS at")
                took = time.monotonic() - began
                if row is not None and (best is None or took < best[0]):
                    middle = at + timedelta(seconds=took / 2)
                    best = took, (middle - row["at"]).total_seconds()
    except (StorageError, TimeoutError):
        pass
    return best or (None, None)


def causes_of(found: Mapping[str, Footing]) -> Iterator[CauseAnswer]:
    """Say what troubles every store of the deployment, of each trouble once."""
    told: dict[str, CauseAnswer] = {}
    for process, one in found.items():
        for cause in _of_process(f"process {process} on {one.host}", one):
            told.setdefault(cause.cause, cause)
    yield from told.values()


def _of_process(name: str, one: Footing) -> Iterator[CauseAnswer]:
    if one.full_seconds_ago is not None and one.full_seconds_ago < LATELY_SECONDS:
        yield CauseAnswer(
            cause="database_full",
            why="The disk of PostgreSQL is full: it refused a write of this service"
            f" {one.full_seconds_ago:.0f} seconds ago.",
            do="Make room on that disk, or grow it. What was refused is asked for again by whoever"
            " sent it; nothing that was answered is lost.",
        )
    if one.free_bytes < min(FULL_BYTES, FULL_SHARE * one.disk_bytes):
        yield CauseAnswer(
            cause="disk_full",
            why=f"The disk of DATA_DIR is full: {one.free_bytes >> 20} MB are left to {name}.",
            do="Make room on that disk, or grow it: exports, files and embedded servers are kept there.",
        )
    if not one.is_redis_there:
        yield CauseAnswer(
            cause="redis_lost",
            why=f"Redis is out of reach of {name}: after a lease its stores answer 503 shard_unavailable.",
            do="Bring Redis back, or mend REDIS_URL and the network to it; nothing else is to be done,"
            " and nothing is lost.",
        )
    elif one.lease_left_seconds <= 0:
        yield CauseAnswer(
            cause="lease_lost",
            why=f"The lease of {name} has lapsed: it could not beat in time, beside the map of slots"
            " in PostgreSQL, and its stores answer 503 shard_unavailable.",
            do="See what holds it up: a stopped or starved process, or a lock on process_beats in"
            " PostgreSQL. The lease comes back with the next beat; a process that is gone for good is"
            " replaced within a lease.",
        )
    yield from _of_pace(name, one)
    yield from _of_clock(name, one)


def _of_pace(name: str, one: Footing) -> Iterator[CauseAnswer]:
    slow = one.database_seconds is None or one.database_seconds > SLOW_SECONDS
    if not slow and one.commit_seconds <= SLOW_COMMIT_SECONDS:
        return
    if one.database_seconds is None:
        why = f"PostgreSQL does not answer {name} within {LOOK_SECONDS:.0f} seconds"
    elif slow:
        why = f"PostgreSQL takes {one.database_seconds * 1000:.0f} ms to read nothing for {name}"
    else:
        why = f"A commit of {name} has not been answered for {one.commit_seconds:.0f} seconds"
    yield CauseAnswer(
        cause="database_slow",
        why=f"{why}: whatever a store does waits for it.",
        do="Look at PostgreSQL: its load, its disk, locks that are held (pg_stat_activity), and the"
        " network to it.",
    )


def _of_clock(name: str, one: Footing) -> Iterator[CauseAnswer]:
    ahead, tolerated = one.ahead_of_database_seconds, OFF_SECONDS + (one.database_seconds or 0)
    if ahead is None or abs(ahead) <= tolerated:
        return
    redis = one.ahead_of_redis_seconds
    if redis is not None and abs(redis) <= OFF_SECONDS:
        whose, other, seconds = "PostgreSQL's server", f"that of {name}", -ahead
    else:
        whose, other, seconds = name, "PostgreSQL's", ahead
    off = f"{abs(seconds):.0f} seconds {'ahead of' if seconds > 0 else 'behind'}"
    yield CauseAnswer(
        cause="clock_off",
        why=f"The clock of {whose} is {off} {other}: signatures, codes and tokens are taken for too"
        " old or too new, and jobs run early or late.",
        do="Let a time server set that clock (timedatectl set-ntp true; chronyc tracking says how far"
        " it is off). Nothing runs twice meanwhile.",
    )
