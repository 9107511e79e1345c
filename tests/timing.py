"""Time in tests: it moves when a test moves it, and the one way to wait for what real servers do."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta

import anyio

from tests.http.people import NOON
from tolsey.runtime.clock import Time
from tolsey.runtime.shards.shard import Shard

PATIENCE_SECONDS = 240.0
"""What comes at all has come by then, however slow the machine: it bounds a hang, and is no bet."""
LOOK_SECONDS = 0.005
STEP = 0.4
"""How much of a lease passes at a time: less than the half after which a process is no longer fresh."""
STEPS = 4


class TestTime(Time):
    """A time that stands still until a test advances it; with `runs`, real time passes in it as well.

    One that runs is for processes that live beside each other: they beat as they do in production.
    """

    __test__ = False

    def __init__(self, *, runs: bool = False) -> None:
        super().__init__(self._now)
        self._runs = runs
        self._advanced = 0.0
        self._waiting: list[tuple[float, Callable[[float], None]]] = []
        """What is to end when, and how it is told the loop's time at which it ends."""

    def _now(self) -> datetime:
        return NOON + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return self._advanced + (Time.monotonic() if self._runs else 0.0)

    async def sleep(self, seconds: float, unless: asyncio.Event | None = None) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            await super().sleep(seconds, unless or asyncio.Event())

    def timeout(self, seconds: float) -> asyncio.Timeout:
        limit = asyncio.timeout(seconds if self._runs else None)

        def end_at(when: float) -> None:
            with suppress(RuntimeError):  # it was not entered, or has ended
                limit.reschedule(when)

        self._waiting.append((self.monotonic() + seconds, end_at))
        return limit

    def move_on_after(self, seconds: float) -> anyio.CancelScope:
        scope = super().move_on_after(seconds) if self._runs else anyio.CancelScope()

        def end_at(when: float) -> None:
            scope.deadline = when

        self._waiting.append((self.monotonic() + seconds, end_at))
        return scope

    def advance(self, seconds: float) -> None:
        """Let time pass: what falls due in it ends."""
        self._advanced += seconds
        now, loop_now = self.monotonic(), asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, []
        for due, end_at in waiting:
            if due > now:
                self._waiting.append((due, end_at))
            if due <= now or self._runs:
                end_at(loop_now + max(0.0, due - now))


class RestingTime(TestTime):
    """A time whose sleeps end immediately and are recorded."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []

    async def sleep(self, seconds: float, unless: asyncio.Event | None = None) -> None:
        if unless is None:
            self.rests.append(seconds)
        else:
            await super().sleep(seconds, unless)


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until a condition holds; awaits it when it is asynchronous."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await anyio.sleep(LOOK_SECONDS)


async def lapse(time: TestTime, lease_seconds: float, *living: Shard) -> None:
    """Let the lease of every process but these end, which live on: they beat after each step."""
    for _ in range(STEPS):
        time.advance(STEP * lease_seconds)
        for shard in living:
            await shard.round()
