"""One timer for all deadlines: futures are failed in buckets instead of one timer each."""

import asyncio
from heapq import heappop, heappush
from typing import Any

from tolsey.runtime.errors import DeadlineExceeded

TICK_SECONDS = 0.02


class Wheel:
    """Fails the futures whose deadline has passed, at most one tick late."""

    __slots__ = ("_buckets", "_loop", "_ticks", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Buckets keep insertion order, so that two runs of one seed expire alike.
        self._buckets: dict[int, dict[asyncio.Future[Any], None]] = {}
        self._ticks: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, future: asyncio.Future[Any], deadline: float) -> dict[asyncio.Future[Any], None]:
        """Watch a future; the caller takes it out of the returned bucket when it is done."""
        tick = int(deadline / TICK_SECONDS) + 1
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket[future] = None
            return bucket
        bucket = self._buckets[tick] = {future: None}
        heappush(self._ticks, tick)
        if self._ticks[0] == tick:
            self._wait()
        return bucket

    def _wait(self) -> None:
        """Turn when the first bucket is due: who waits for long, or not any more, costs nothing meanwhile."""
        while self._ticks and not self._buckets[self._ticks[0]]:  # answered in time, as most are
            del self._buckets[heappop(self._ticks)]
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            self._loop.call_at(self._ticks[0] * TICK_SECONDS, self._turn) if self._ticks else None
        )

    def _turn(self) -> None:
        # A timer comes by up to its clock's resolution early, and what it was set for is due even then.
        now = max(self._ticks[0], int(self._loop.time() / TICK_SECONDS))
        while self._ticks and self._ticks[0] <= now:
            for future in self._buckets.pop(heappop(self._ticks)):
                if not future.done():
                    future.set_exception(DeadlineExceeded("no answer in time"))
        self._wait()
