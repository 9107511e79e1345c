"""Where calls to the outside wait for a place: a lane for each sort of work, turns inside it by tenant.

What is slow in one lane keeps no other waiting, and no tenant fills a lane: it has at most a quarter
of the places, and the last quarter is for tenants that have none.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from tolsey.runtime.messages import LaneName

PLACES: Final[Mapping[LaneName, int]] = {
    "short": 32,
    "processor": 16,
    "platform": 64,
    "model": 1_000,
    "scan": 16,
    "mail": 8,
    "job": 16,
}
"""How many calls of a lane one process makes at once (rules/calls#lanes).

An answer of a model is a stream that its reader waits for, minutes long and nearly free: many run at once.
"""


class Lane:
    """Some places, and the calls that wait for one, by tenant."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._share = max(1, places // 4)
        self._open_to_all = places - places // 4
        self._taken = 0
        self._working: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncIterator[None]:
        """Hold a place for as long as the block runs; who waits is let in by turns of the tenants."""
        if tenant in self._waiting or not self._has_place_for(tenant):
            await self._wait_for_turn(tenant)
        else:
            self._take(tenant)
        try:
            yield
        finally:
            self._leave(tenant)

    @property
    def working(self) -> int:
        """How many places are taken."""
        return self._taken

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(map(len, self._waiting.values()))

    async def _wait_for_turn(self, tenant: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(tenant, turn)
            else:
                self._leave(tenant)  # it was let in at the very moment it gave up
            raise

    def _has_place_for(self, tenant: str) -> bool:
        working = self._working[tenant]
        if working == 0:
            return self._taken < self._places
        return working < self._share and self._taken < self._open_to_all

    def _take(self, tenant: str) -> None:
        self._working[tenant] += 1
        self._taken += 1

    def _leave(self, tenant: str) -> None:
        self._taken -= 1
        self._working[tenant] -= 1
        if not self._working[tenant]:
            del self._working[tenant]
        while self._let_in():
            pass

    def _let_in(self) -> bool:
        """Give a place to the tenant whose turn it is; its next turn comes after all others'."""
        if self._taken == self._places:
            return False
        for tenant, turns in self._waiting.items():
            if self._has_place_for(tenant):
                self._take(tenant)
                self._waiting.move_to_end(tenant)
                turn = turns[0]
                self._forget(tenant, turn)
                turn.set_result(None)
                return True
        return False

    def _forget(self, tenant: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[tenant]
        turns.remove(turn)
        if not turns:
            del self._waiting[tenant]


class Lanes:
    """The lanes of one process."""

    def __init__(self) -> None:
        self._lanes = {name: Lane(places) for name, places in PLACES.items()}
        self._suspects = {name: Lane(1) for name in PLACES}

    def place(
        self, lane: LaneName, tenant: str, *, suspect: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Hold a place in a lane; of suspects, that may end the process, one at a time."""
        return self._alone(lane, tenant) if suspect else self._lanes[lane].place(tenant)

    def __iter__(self) -> Iterator[tuple[LaneName, Lane]]:
        """Give each lane by its name."""
        return iter(self._lanes.items())

    @asynccontextmanager
    async def _alone(self, lane: LaneName, tenant: str) -> AsyncIterator[None]:
        async with self._suspects[lane].place(tenant), self._lanes[lane].place(tenant):
            yield
