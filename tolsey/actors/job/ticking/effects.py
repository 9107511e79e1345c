"""The work of the job that moves launches: each that waits for something is told, spread over the tick."""

import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.job.effects import Progress, Work
from tolsey.actors.store.launch.messages import ContinueLaunch
from tolsey.actors.store.messages import store
from tolsey.actors.store.provisioning.messages import FollowTransfer
from tolsey.runtime.decision import Tell
from tolsey.runtime.throttle import Throttle
from tolsey.storage.commerce import devstores, launches
from tolsey.storage.database import Database

SPREAD: Final = timedelta(minutes=8)
"""Over so much of the ten minutes between two ticks."""


class LaunchTicks:
    """Tells launches that a tick has come."""

    def __init__(
        self,
        database: Database,
        post: Callable[[Sequence[Tell]], Awaitable[int]],
        throttle: Throttle,
        *,
        reminded_after: Mapping[str, Sequence[int]],
    ) -> None:
        """Take after how many hours people are reminded of each milestone."""
        self._reminded_after = reminded_after
        self._database = database
        self._post = post
        self._throttle = throttle

    def work(self) -> Mapping[str, Work]:
        """List it by the job's name."""
        return {"launch-tick": self.tick}

    async def tick(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Tell those launches and transfers that wait for something, and no others; each pass is counted."""
        awaited = await devstores.awaited(self._database)
        counters = {
            "transfers": len(awaited),
            "launches": 0,
            "dispatch": 0,
            "probe": 0,
            "report": 0,
        }
        followed = [_follow(store_id, scheduled_at) for store_id in awaited]
        async for _ in self._throttle.portions(followed, self._post):
            progress(counters)
        async for page in launches.waiting(self._database, scheduled_at, self._reminded_after):
            tells = [_tick(one.store_id, scheduled_at) for one in page]
            async for _ in self._throttle.portions(tells, self._post):
                progress(counters)
            counters["launches"] += len(page)
            counters["dispatch"] += sum(one.has_work for one in page)
            counters["probe"] += sum(one.is_looking for one in page)
            counters["report"] += sum(one.is_reminding for one in page)
        return counters


def _follow(store_id: str, scheduled_at: datetime) -> Tell:
    return Tell(
        store(store_id),
        FollowTransfer(at=scheduled_at),
        key=f"follow-transfer:{store_id}:{scheduled_at.isoformat()}",
    )


def _tick(store_id: str, scheduled_at: datetime) -> Tell:
    due_at = scheduled_at + SPREAD * (zlib.crc32(store_id.encode()) % 1000 / 1000)
    return Tell(
        store(store_id),
        ContinueLaunch(at=due_at, is_tick=True),
        key=f"launch-tick:{store_id}:{scheduled_at.isoformat()}",
        due_at=due_at,
    )
