"""How long jobs give way: they work in portions, and see after each what answers cost meanwhile.

A job asks for nothing that anyone waits for. So a commit is timed before each portion, with nothing of ours
under way, and again and again beside it; where those beside it cost too much, portions shrink. What it costs
without us varies with all that others do: one look says little, so those of the last portions count.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from tolsey.runtime.clock import REAL_TIME, Time
from tolsey.storage.errors import StorageError

Item = TypeVar("Item")

FIRST, SMALLEST, LARGEST = 500, 20, 5000
"""Rows of a portion: of the first one of a run, and the bounds between which they adapt."""
LONGEST_SECONDS: Final = 0.5
"""A portion that took longer is too large, whoever noticed: the other jobs wait for their turns."""
DEAREST: Final = 3.0
"""So many times what it costs without us may an answer cost."""
UNNOTICED_SECONDS: Final = 0.01
"""What nobody notices, however many times more than nothing it is."""
ROWS_A_SECOND: Final = 10_000
PROBE_EVERY_SECONDS: Final = 0.05
REMEMBERED: Final = 20
"""So many of the last looks without us say what an answer costs: all but the dearest tenth of them."""
GIVING_WAY: Final = 4
"""So many times as long as a portion took is rested after one that others noticed; else once."""


class Throttle:
    """Lets the jobs of a process work by turns, a portion at a time.

    `probe` is what is timed. No more than half of the time is worked, and a bound of rows a second.
    """

    def __init__(
        self,
        probe: Callable[[], Awaitable[Any]],
        time: Time = REAL_TIME,
    ) -> None:
        self._probe = probe
        self._time = time
        self._turn = asyncio.Lock()
        self._idle: deque[float] = deque(maxlen=REMEMBERED)

    async def batches(self, work: Callable[[int], Awaitable[int]]) -> AsyncIterator[int]:
        """Have work done that is told how many rows to take, until it took fewer; give each count."""
        size = FIRST
        while True:
            async with self._turn:
                asked = size
                done, size = await self._portion(work, asked)
            yield done
            if done < asked:
                return

    async def portions(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Awaitable[Any]]
    ) -> AsyncIterator[int]:
        """Have work done on items, a portion after the other; give how many are done."""
        at = 0

        async def following(size: int) -> int:
            nonlocal at
            portion = items[at : at + size]
            if portion:
                await work(portion)
            at += len(portion)
            return len(portion)

        async for _ in self.batches(following):
            yield at

    async def steps(self, work: AsyncIterator[object]) -> AsyncIterator[int]:
        """Have work go on step by step, each of which counts as the smallest portion; give each count."""

        async def following(size: int) -> int:
            done, ends_at = 0, self._time.monotonic() + LONGEST_SECONDS
            async for _ in work:
                done += SMALLEST
                if done + SMALLEST > size or self._time.monotonic() > ends_at:
                    return size
            return done

        async for count in self.batches(following):
            yield count

    async def _portion(self, work: Callable[[int], Awaitable[int]], asked: int) -> tuple[int, int]:
        """Have a portion done, and rest; answer how many rows that were, and how many are to be next."""
        idle = await self._usual()
        over = asyncio.Event()
        began = self._time.monotonic()
        beside = asyncio.ensure_future(self._dearest_until(over))
        try:
            done = await work(asked)
        except BaseException:
            beside.cancel()
            raise
        took = self._time.monotonic() - began
        over.set()
        dearest = await beside
        noticed = dearest > max(DEAREST * idle, UNNOTICED_SECONDS)
        size = asked
        if noticed or took > LONGEST_SECONDS:
            size = max(SMALLEST, asked // 2)
        elif done == asked:
            size = min(LARGEST, asked * 5 // 4)
        await self._time.sleep(max(took * (GIVING_WAY if noticed else 1), done / ROWS_A_SECOND))
        return done, size

    async def _usual(self) -> float:
        """Tell what an answer costs without us, after one more look."""
        cost = await self._cost()
        if cost < float("inf"):
            self._idle.append(cost)
        return sorted(self._idle)[(len(self._idle) - 1) * 9 // 10] if self._idle else 0.0

    async def _dearest_until(self, over: asyncio.Event) -> float:
        dearest = 0.0
        while True:
            dearest = max(dearest, await self._cost())
            await self._time.sleep(PROBE_EVERY_SECONDS, unless=over)
            if over.is_set():
                return dearest

    async def _cost(self) -> float:
        began = self._time.monotonic()
        try:
            await self._probe()
        except StorageError:  # whoever waits for an answer now gets none
            return float("inf")
        return self._time.monotonic() - began
