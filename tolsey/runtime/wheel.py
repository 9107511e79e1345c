"""One timer for all deadlines: futures are failed in buckets instead of one timer each."""

import asyncio
from typing import Any

from tolsey.runtime.errors import DeadlineExceeded

TICK_SECONDS = 0.02


class Wheel:
    """Fails the futures whose deadline has passed, at most one tick late."""

    __slots__ = ("_armed", "_buckets", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Buckets keep insertion order, so that two runs of one seed expire alike.
        self._buckets: dict[int, dict[asyncio.Future[Any], None]] = {}
        self._armed = False

    def add(self, future: asyncio.Future[Any], deadline: float) -> dict[asyncio.Future[Any], None]:
        """Watch a future; the caller takes it out of the returned bucket when it is done."""
        tick = int(deadline / TICK_SECONDS) + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = {}
            if not self._armed:
                self._armed = True
                self._loop.call_later(TICK_SECONDS, self._turn)
        bucket[future] = None
        return bucket

    def _turn(self) -> None:
        now = int(self._loop.time() / TICK_SECONDS)
        for tick in [tick for tick in self._buckets if tick <= now]:
            for future in self._buckets.pop(tick):
                if not future.done():
                    future.set_exception(DeadlineExceeded("no answer in time"))
        self._armed = bool(self._buckets)
        if self._armed:
            self._loop.call_later(TICK_SECONDS, self._turn)
