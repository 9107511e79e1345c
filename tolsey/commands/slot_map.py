"""`tolsey shards`: which process owns which slots, read where it is written, with no process's help."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from tolsey.runtime.clock import REAL_TIME
from tolsey.runtime.shards.leases import BEATS, Observer
from tolsey.runtime.shards.membership import Heartbeat, read_line
from tolsey.runtime.shards.oversight import ranges
from tolsey.storage import operations
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.runtime.presence import Presence
from tolsey.storage.runtime.slots import Slots

COLUMNS = ("process", "host", "pid", "since", "state", "beat seen", "slots")
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """A process as it looks from outside."""

    id: str
    host: str
    pid: int
    since: str
    state: str
    """`alive`, `draining`, `silent` (no beat was seen for a whole lease), `unknown` without Redis."""
    lease_age_seconds: float | None
    """How long ago its last beat was seen; none when none was."""
    slots: int
    slot_ranges: str


@dataclass(frozen=True, slots=True)
class SlotMapView:
    """The processes and what they hold, and the slots that nobody alive holds."""

    processes: list[ProcessSeen]
    unowned: str
    """The slots without an owner, or whose owner is silent."""
    unowned_slots: int
    pinned: dict[int, str]
    redis: bool
    """False when Redis is out of reach: then nobody can tell who is alive."""

    def as_json(self) -> str:
        """Write it for programs."""
        return orjson.dumps(
            asdict(self), option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2
        ).decode()

    def as_text(self) -> str:
        """Write it for people."""
        rows = [
            (
                one.id,
                one.host,
                str(one.pid),
                one.since[:19],
                one.state,
                "-" if one.lease_age_seconds is None else f"{one.lease_age_seconds:.1f} s ago",
                str(one.slots),
            )
            for one in self.processes
        ]
        lines = _columns([COLUMNS, *rows])
        lines += ["", *(f"{one.id}: {one.slot_ranges or 'no slots'}" for one in self.processes)]
        if self.unowned_slots:
            lines.append(f"{NOBODY}: {self.unowned} ({self.unowned_slots} slots wait for an owner)")
        if not self.redis:
            lines.append("Redis is out of reach: who is alive is not known.")
        lines += [f"pinned: {slot} to {process}" for slot, process in sorted(self.pinned.items())]
        return "\n".join(lines)


async def read_map(database_url: str, redis_url: str, lease_seconds: float) -> SlotMapView:
    """Read the map from PostgreSQL, and watch Redis until every process has beaten or a lease is over.

    Raises StorageError when PostgreSQL is out of reach, or empty.
    """
    database = Database(database_url)
    await database.open()
    try:
        if not await operations.has_map(database):
            raise StorageError("The database has no map of slots yet: nothing was served from it.")
        deployment = await Slots(database).deployment()
        watched = await _watch(redis_url, deployment, lease_seconds)
        rows = await operations.slots(database)
    finally:
        await database.close()
    held: dict[str | None, list[int]] = defaultdict(list)
    for row in rows:
        held[row["owner"]].append(row["slot"])
    unheld = held.pop(None, [])
    lines = dict.fromkeys(filter(None, held), Heartbeat(0)) | (watched.lines if watched else {})
    processes = [
        ProcessSeen(
            process,
            line.host,
            line.pid,
            line.since,
            watched.state(process) if watched else "unknown",
            watched.ages.get(process) if watched else None,
            len(held[process]),
            ranges(held[process]),
        )
        for process, line in sorted(lines.items())
    ]
    lost = [slot for one in processes if one.state == "silent" for slot in held[one.id]]
    return SlotMapView(
        processes,
        ranges([*unheld, *lost]),
        len(unheld) + len(lost),
        {row["slot"]: row["pinned_to"] for row in rows if row["pinned_to"]},
        watched is not None,
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen of the processes' beats."""

    lines: dict[str, Heartbeat]
    ages: dict[str, float]
    """How long ago each process's line was seen to change, of those that did."""
    observer: Observer

    def state(self, process: str) -> str:
        """Say how a process is."""
        if process not in self.ages or self.observer.is_dead(process):
            return "silent"
        return "draining" if self.lines[process].draining else "alive"


async def _watch(redis_url: str, deployment: str, lease_seconds: float) -> Watched | None:
    """Read lines until each has changed, or for a lease; none when Redis is out of reach."""
    presence = Presence(redis_url, deployment)
    observer = Observer(lease_seconds)
    beaten: dict[str, float] = {}
    try:
        texts = await presence.lines()
        observer.observe(texts, ())
        end = REAL_TIME.monotonic() + lease_seconds
        while REAL_TIME.monotonic() < end and any(
            process not in beaten and not observer.is_dead(process) for process in texts
        ):
            await REAL_TIME.sleep(lease_seconds / BEATS / 2)
            before, texts = texts, await presence.lines()
            observer.observe(texts, ())
            changed = [process for process in texts if before.get(process) != texts[process]]
            beaten |= dict.fromkeys(changed, REAL_TIME.monotonic())
    except CacheUnavailable:
        return None
    finally:
        await presence.close()
    now = REAL_TIME.monotonic()
    ages = {process: round(now - at, 3) for process, at in beaten.items() if process in texts}
    return Watched({process: read_line(text) for process, text in texts.items()}, ages, observer)


def _columns(rows: Sequence[Sequence[Any]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
