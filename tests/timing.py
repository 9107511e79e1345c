"""Time in tests: it moves when a test moves it, and the one way to wait for what real servers do."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

import anyio
import pytest

from tests.http.people import NOON
from tolsey.runtime.clock import Time
from tolsey.runtime.shards import ownership, routing
from tolsey.runtime.shards.shard import Shard

Found = TypeVar("Found")

PATIENCE_SECONDS = 240.0
"""What comes at all has come by then, however slow the machine: it bounds a hang, and is no bet."""
LOOK_SECONDS = 0.005
LEASE_SECONDS = 60.0
"""A lease that no pause of a machine ends: a test ends it by `lapse`."""
STALL_SECONDS = 6.0
BEAT_SECONDS = 0.2
STEP = 0.4
"""How much of a lease passes at a time: less than the half after which a process is no longer fresh."""
STEPS = 4
"""So many of them end a lease."""


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
        return (datetime.now(UTC) if self._runs else NOON) + timedelta(seconds=self._advanced)

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
        if not self._waiting:
            return
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


@overload
async def until(event: Callable[..., Awaitable[Found | None]]) -> Found: ...
@overload
async def until(event: Callable[..., Found | None]) -> Found: ...
async def until(event: Callable[..., Any]) -> Any:
    """Wait until something is found that is true, and return it; awaits what is asynchronous."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            found = event()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return found
            await anyio.sleep(LOOK_SECONDS)


def block_until(event: Callable[[], Found]) -> Found:
    """Wait as `until` does, where there is no event loop."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not (found := event()):
        if time.monotonic() > ends_at:
            raise TimeoutError
        time.sleep(LOOK_SECONDS)
    return found


def beat_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes see soon what the others did, and wait for an owner as long as a lease lasts."""
    monkeypatch.setattr(ownership, "BEATS", LEASE_SECONDS / BEAT_SECONDS)
    monkeypatch.setattr(routing, "HOLD_SECONDS", LEASE_SECONDS)


async def lapse(moved: TestTime, lease_seconds: float, *living: Shard, steps: int = STEPS) -> None:
    """Let the lease of every process but these end, which live on: they beat after each step."""
    for _ in range(steps):
        moved.advance(STEP * lease_seconds)
        for shard in living:
            await shard.round()


async def stall(pid: int) -> None:
    """Stop a process for longer than a lease lasts in production."""
    os.kill(pid, signal.SIGSTOP)
    try:
        await anyio.sleep(STALL_SECONDS)
    finally:
        os.kill(pid, signal.SIGCONT)
