"""The time that the service lives by, handed down from its start: tests hand in one that they move."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial

import anyio


class Time:
    """The real time: the time of day, and a steady clock with everything that waits for it."""

    monotonic: Callable[[], float] = staticmethod(
        partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    )
    """Return the seconds of a clock that nobody sets, and that continues while the machine sleeps.

    It is a C function and not a method of ours, because every turn calls it twice.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.now = now
        """Return the time of day in UTC."""

    async def sleep(self, seconds: float, unless: asyncio.Event | None = None) -> None:
        """Wait so long, or until an event is set."""
        if unless is None:
            await asyncio.sleep(seconds)
            return
        with self.move_on_after(seconds):
            await unless.wait()

    def timeout(self, seconds: float) -> asyncio.Timeout:
        """Return a context that raises TimeoutError when its block takes longer."""
        return asyncio.timeout(seconds)

    def move_on_after(self, seconds: float) -> anyio.CancelScope:
        """Return a context that ends its block, without an error, when it takes longer."""
        return anyio.move_on_after(seconds)

    async def every(self, seconds: float) -> AsyncIterator[None]:
        """Yield after each pause of so many seconds, without end."""
        while True:
            await self.sleep(seconds)
            yield


REAL_TIME = Time()
"""The time of whatever is started without another one."""
