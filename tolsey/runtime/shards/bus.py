"""Messages between processes, in frames over Redis Streams.

Everything that waits for a target when the wire is free goes as one entry of its stream. Who asks
keeps the ask until it is answered, and sends it again when the actor has moved, when data was lost,
or when nothing is heard for long; who is asked takes each ask once (`shard.Shard`). So nothing
depends on a stream: it may be cut, emptied or lost.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Protocol

import structlog

from tolsey.runtime.clock import Time
from tolsey.runtime.codec import WireForm, decode_error
from tolsey.runtime.errors import Overloaded, ShardUnavailable
from tolsey.runtime.shards import frames as frames_of
from tolsey.runtime.shards.frames import Entry
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns.wheel import Wheel
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.runtime.streams import Address, Frame

log = structlog.get_logger()

MOST_FLIGHTS = 20_000
"""How many asks of one process may be on their way to others."""

FRAME_ENTRIES = 512
SILENCE_SECONDS = 2.0
"""An ask without an answer is sent again after this long, then after twice as long, and so on."""

MOST_SENDS = 8
PAUSE_SECONDS = 0.1

UNREADABLE = (ValueError, TypeError, LookupError)

MOVED: Final = object()
"""Instead of an answer: ask again wherever the actor is now."""


class FrameCarrier(Protocol):
    """What carries frames; `storage.runtime.streams.Streams` is the real one."""

    async def send(self, frames: dict[Address, bytes]) -> list[Address]:
        """Send frames; answer which found nobody."""

    async def read(self) -> list[Frame]:
        """Wait a moment for frames to this process."""


class Flight:
    """An ask on its way, until it is answered."""

    __slots__ = ("entry", "future", "number", "sends", "sent_at", "slot", "target", "until")

    def __init__(self, number: int, entry: Entry, slot: int | None, until: float) -> None:
        self.number = number
        self.entry = entry
        self.slot = slot
        """The slot it is for; none for an operation of the target itself."""
        self.until = until
        self.target = ""
        self.sends = 0
        self.sent_at = 0.0
        self.future: asyncio.Future[Any]


class Bus:
    """The frames of one process: what it sends, what it waits for, what it is sent."""

    def __init__(
        self,
        me: str,
        wire: FrameCarrier,
        take: Callable[[str, Entry, float], None],
        telemetry: Telemetry,
        form: WireForm,
        *,
        time: Time,
    ) -> None:
        self._form = form
        self._time = time
        self._me = me
        self._wire = wire
        self._take = take
        """Called with the sender, an entry that is no answer, and how old it is in seconds."""
        self._telemetry = telemetry
        self._flights: dict[int, Flight] = {}
        self._numbers = 0
        self._pending: dict[Address, deque[Entry]] = {}
        self._woken = asyncio.Event()
        self._wheel: Wheel | None = None
        self.clock_offset = 0.0
        """What to add to the steady clock to get that of Redis."""
        self.lag_seconds = 0.0
        """How long the frame that was read last had waited in its stream."""

    async def run(self) -> None:
        """Write and read frames until cancelled."""
        writing = asyncio.create_task(self._kept_up(self._write))
        try:
            await self._kept_up(self._read)
        finally:
            while not writing.done():  # a driver that is cancelled as it finishes may swallow it
                writing.cancel()
                with self._time.move_on_after(0.2):
                    await asyncio.wait({writing})

    async def _kept_up(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin again after what nobody expected: a process that neither writes nor reads holds its slots and answers none."""
        while True:
            try:
                await work()
            except Exception as error:
                log.exception("bus.failed", error=repr(error))
                await self._time.sleep(PAUSE_SECONDS)

    # What this process asks.

    def fly(self, entry: Entry, slot: int | None, seconds: float) -> Flight:
        """Make a flight for an entry; which gets its number. Raises Overloaded."""
        if len(self._flights) >= MOST_FLIGHTS:
            self._telemetry.counters["bus_full"] += 1
            raise Overloaded("the way to other processes")
        self._numbers += 1
        entry["number"] = self._numbers
        flight = Flight(self._numbers, entry, slot, asyncio.get_running_loop().time() + seconds)
        self._flights[flight.number] = flight
        return flight

    async def exchange(self, flight: Flight, target: str) -> Any:
        """Send a flight and wait: for the reply's payload, or MOVED. Raises the error it is answered with."""
        loop = asyncio.get_running_loop()
        if self._wheel is None:
            self._wheel = Wheel(loop)
        flight.future = loop.create_future()
        flight.target = target
        self._launch(flight)
        bucket = self._wheel.add(flight.future, flight.until)
        try:
            return await flight.future
        finally:
            bucket.pop(flight.future, None)

    def end(self, flight: Flight) -> None:
        """Forget a flight; an answer that still comes is not for anybody."""
        self._flights.pop(flight.number, None)

    def _launch(self, flight: Flight) -> None:
        flight.sends += 1
        flight.sent_at = self._time.monotonic()
        entry = flight.entry
        if entry["is"] == "ask":
            # A copy, for a former one may still wait to be written.
            left = max(0.0, flight.until - asyncio.get_running_loop().time())
            entry = {**entry, "seconds": round(left, 3), "again": flight.sends > 1}
        self._telemetry.counters["bus_resent" if flight.sends > 1 else "bus_sent"] += 1
        self.post((flight.target, "in"), entry)

    def sweep(self, owner_of: Callable[[int], str | None]) -> None:
        """Turn flights to wherever their actors are now; send again what was not answered."""
        now = self._time.monotonic()
        for flight in list(self._flights.values()):
            if flight.sends == 0 or flight.future.done():
                continue
            if flight.slot is not None and owner_of(flight.slot) != flight.target:
                flight.future.set_result(MOVED)
            elif flight.sends < MOST_SENDS and now - flight.sent_at > SILENCE_SECONDS * 2 ** (
                flight.sends - 1
            ):
                self._launch(flight)

    def resend(self) -> None:
        """Send everything again that is not answered: what was on its way may be lost."""
        for flight in list(self._flights.values()):
            if flight.sends and not flight.future.done():
                self._launch(flight)

    def fail(self, target: str) -> None:
        """Fail the operations that wait for a process that has ended."""
        for flight in list(self._flights.values()):
            if flight.slot is None and flight.target == target and not flight.future.done():
                flight.future.set_exception(ShardUnavailable("that process has ended"))

    @property
    def in_flight(self) -> int:
        """How many asks are on their way."""
        return len(self._flights)

    # Frames.

    def post(self, address: Address, entry: Entry) -> None:
        """Put an entry into the next frame to an address."""
        waiting = self._pending.get(address)
        if waiting is None:
            waiting = self._pending[address] = deque()
        waiting.append(entry)
        self._woken.set()

    async def _write(self) -> None:
        while True:
            while self._pending:
                await self._write_frames(self._frames())
            self._woken.clear()
            await self._woken.wait()

    def _frames(self) -> dict[Address, bytes]:
        frames: dict[Address, bytes] = {}
        for address, waiting in list(self._pending.items()):
            entries = [waiting.popleft() for _ in range(min(len(waiting), FRAME_ENTRIES))]
            try:
                frames[address] = frames_of.write(self._form, self._me, entries)
            except TypeError as error:  # what is no JSON must not keep the others back
                log.exception("bus.unwritable", error=repr(error))
            if not waiting:
                del self._pending[address]
        return frames

    async def _write_frames(self, frames: dict[Address, bytes]) -> None:
        try:
            for process, channel in await self._wire.send(frames):
                if channel == "in":
                    self._nobody(process)
        except CacheUnavailable as error:
            # Who waits for an answer sends again; a reply that is lost is asked for again.
            log.warning("bus.not_sent", frames=len(frames), error=str(error))
            await self._time.sleep(PAUSE_SECONDS)
        self._telemetry.counters["bus_frames"] += len(frames)

    def _nobody(self, process: str) -> None:
        """Send again soon what found no stream: its process is gone, or Redis lost it."""
        log.info("bus.nobody", process=process)
        for flight in self._flights.values():
            if flight.target == process and flight.sends > 0:
                flight.sends = max(1, flight.sends - 1)
                flight.sent_at = float("-inf")

    async def _read(self) -> None:
        while True:
            try:
                frames = await self._wire.read()
            except CacheUnavailable:
                await self._time.sleep(PAUSE_SECONDS)
                continue
            now = self._time.monotonic() + self.clock_offset
            for frame in frames:
                self.lag_seconds = max(0.0, now - frame.at_seconds)
                try:
                    sender, entries = frames_of.read(frame.body)
                except UNREADABLE as error:
                    log.exception("bus.unreadable", error=repr(error))
                    continue
                for entry in entries:
                    try:
                        self._deal(sender, entry, self.lag_seconds)
                    except UNREADABLE as error:  # the others are not to blame
                        log.exception("bus.unreadable", error=repr(error))

    def _deal(self, sender: str, entry: Entry, age: float) -> None:
        if entry["is"] not in {"reply", "error", "moved"}:
            self._take(sender, entry, age)
            return
        flight = self._flights.get(entry["number"])
        if flight is None or flight.sends == 0 or flight.future.done():
            return
        if entry["is"] == "reply":
            flight.future.set_result(entry["payload"])
        elif sender != flight.target:
            return  # it has moved on: a former owner's no says nothing of what follows
        elif entry["is"] == "error":
            flight.future.set_exception(decode_error(entry["error"]))
        else:
            if flight.sends == 1:
                flight.sends = 0  # it has been nowhere else, so it took effect nowhere
            flight.future.set_result(MOVED)


class Tasks:
    """Work that nobody waits for; it ends with its owner."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self, work: Awaitable[None]) -> None:
        """Start on some work; what it raises is logged."""
        task = asyncio.ensure_future(self._logged(work))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def close(self) -> None:
        """End what still runs."""
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task

    async def _logged(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            log.exception("shard.work_failed", error=repr(error))
