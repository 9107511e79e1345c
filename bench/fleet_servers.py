"""Virtual time, and stand-ins of Redis and PostgreSQL that only count and take a moment: what `fleet.py` runs on."""

import asyncio
import selectors
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Protocol

from tolsey.runtime.clock import Time
from tolsey.runtime.shards.frames import Entry
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.storage.records.runtime.slots import Holding
from tolsey.storage.runtime.presence import Look


class VirtualTime(Time):
    """Seconds that pass only while nothing is ready to run."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Return them."""
        return self.seconds


TIME: Final = VirtualTime()

REDIS_SECONDS: Final = 0.000_5
POSTGRES_SECONDS: Final = 0.001
FRAME_SECONDS: Final = 0.001
COMMANDS_OF_A_BEAT: Final = 6
"""HGET, HSET, HGETALL, GET, TIME and INFO, in one transaction (`Presence.beat`)."""
COMMANDS_TO_KEEP: Final = 4
"""XTRIM and EXPIRE of two streams (`Streams.keep`)."""
BYTES_OF_INFO: Final = 600


class Skipping(selectors.SelectSelector):
    """Waits for nothing: time goes on to when the next thing is due."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass that the loop would wait."""
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        TIME.seconds += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        super().__init__(Skipping())

    def time(self) -> float:
        """Tell the virtual time."""
        return TIME.seconds


class Redis:
    """The lines of processes and the number of changes; counts what it is asked."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.changes = 0
        self.run = 1
        self.asked: Counter[str] = Counter()

    async def answer(self, commands: int, size: int) -> None:
        """Take a moment, and count."""
        self.asked["commands"] += commands
        self.asked["bytes"] += size
        await asyncio.sleep(REDIS_SECONDS)

    async def beat(self, process: str, line: str) -> Look:
        """Write a line and read all."""
        before, self.lines[process] = self.lines.get(process), line
        size = sum(len(one) + len(text) for one, text in self.lines.items())
        await self.answer(COMMANDS_OF_A_BEAT, size + len(line) + BYTES_OF_INFO)
        self.asked["beats"] += 1
        return Look(
            server=str(self.run),
            before=before,
            processes=dict(self.lines),
            changes=self.changes,
            server_seconds=TIME.seconds,
        )

    async def changed(self) -> None:
        """Count a change of the map."""
        self.changes += 1
        await self.answer(1, 50)

    async def forget(self, *processes: str) -> None:
        """Take lines away."""
        for process in processes:
            self.lines.pop(process, None)
        await self.answer(1, 50)

    def empty(self) -> None:
        """Lose everything, as a restart without persistence does."""
        self.lines.clear()
        self.changes = 0
        self.run += 1


class Postgres:
    """The map of slots and the beats beside it; counts statements and rows."""

    def __init__(self) -> None:
        self.slots = {slot: Holding(0, None, None, None) for slot in range(SLOTS)}
        self.beats: dict[str, int] = {}
        self.asked: Counter[str] = Counter()

    async def answer(self, rows: int) -> None:
        """Take a moment, and count."""
        self.asked["statements"] += 1
        self.asked["rows"] += rows
        await asyncio.sleep(POSTGRES_SECONDS)

    async def read(self) -> dict[int, Holding]:
        """Read the map, each owner with its beat."""
        await self.answer(SLOTS)
        self.asked["reads"] += 1
        beats = self.beats
        return {
            slot: Holding(epoch, owner, pin, beats.get(owner or ""))
            for slot, (epoch, owner, pin, _) in self.slots.items()
        }

    async def beat(self, process: str, number: int) -> None:
        """Write down how often a process has beaten."""
        self.beats[process] = number
        await self.answer(1)

    async def forget(self, process: str) -> None:
        """Take the beats of a process away."""
        self.beats.pop(process, None)
        await self.answer(1)

    async def take(
        self, owner: str | None, seen: Mapping[int, int], *, from_owner: str | None = None
    ) -> dict[int, int]:
        """Give slots to an owner where the epoch is still the one that was seen."""
        given = {}
        for slot, epoch in seen.items():
            held = self.slots[slot]
            if held.epoch == epoch and (from_owner is None or held.owner == from_owner):
                given[slot] = epoch + 1
                self.slots[slot] = held._replace(epoch=epoch + 1, owner=owner)
        await self.answer(len(seen))
        self.asked["slots moved"] += len(given)
        return given

    async def release(self, owner: str) -> None:
        """Give every slot of an owner to nobody."""
        held = {slot: one.epoch for slot, one in self.slots.items() if one.owner == owner}
        await self.take(None, held)

    async def pin(self, slot: int, process: str | None) -> None:
        """Nobody pins anything here."""
        raise NotImplementedError


class Mail:
    """The streams of one process."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._run = 0

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Announce one key."""
        return ("k1",)

    def seal_with(self, key_id: str) -> None:
        """Seal nothing: `Wire` delivers frames as they are."""
        del key_id

    async def open(self, process: str) -> None:
        """Make them."""
        del process
        self._run = self._redis.run
        await self._redis.answer(4, 400)

    async def keep(self) -> bool:
        """Keep them alive; false when Redis lost them."""
        await self._redis.answer(COMMANDS_TO_KEEP, 300)
        return self._run == self._redis.run

    async def drop(self, process: str) -> None:
        """Take those of another away."""
        del process
        await self._redis.answer(1, 80)

    async def send(self, frames: Any) -> Any:
        """Nothing is sent by them here: `Wire` delivers."""
        raise NotImplementedError

    async def read(self) -> Any:
        """Nothing is read by them here: `Wire` delivers."""
        raise NotImplementedError


class Told(Protocol):
    """Where one process tells another that the map has changed."""

    redis: Redis

    def tell(self, process: str) -> None:
        """Let a process look at the map."""


class Wire:
    """What one process says to others: that the map has changed."""

    clock_offset = 0.0

    def __init__(self, world: "Told") -> None:
        self._world = world

    def post(self, to: tuple[str, str], entry: Entry) -> None:
        """Let another process look, a moment later."""
        del entry
        self._world.redis.asked["frames"] += 1
        self._world.redis.asked["commands"] += 1
        asyncio.get_running_loop().call_later(FRAME_SECONDS, self._world.tell, to[0])

    def resend(self) -> None:
        """Nothing is on its way here."""

    def fail(self, process: str) -> None:
        """Nothing is on its way here."""
