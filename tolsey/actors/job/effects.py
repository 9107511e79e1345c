"""The work of jobs, outside every mailbox; its counters come back as the run's outcome."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from tolsey.actors.job.messages import JobEnded, RunJob
from tolsey.actors.listing.messages import LEFT_ALONE, ClockTick, SyncDue, listing
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import Call, Message
from tolsey.storage import listings, retention
from tolsey.storage.database import Database

log = structlog.get_logger()

Progress = Callable[[Mapping[str, int]], None]
"""Where a long job says how far it is: its counters, as they stand."""

Work = Callable[[datetime, Progress], Awaitable[Mapping[str, Any]]]
"""A job's work: takes its due time, answers its counters. It may run twice and must bear it."""


class JobEffects:
    """Runs jobs. Each is the work under its name."""

    def __init__(self, work: Mapping[str, Work], clock: Callable[[], datetime]) -> None:
        self._work = work
        self._clock = clock

    def handlers(self) -> dict[type[Call], Callable[[Any], Awaitable[Message[Any]]]]:
        """Say which calls this performs."""
        return {RunJob: self.run}

    async def run(self, call: RunJob) -> JobEnded:
        """Do a job's work; a failure is the run's, and waits for the next due time."""
        event = f"cron.{call.name}"  # the specification's own event names
        said = log.bind(execution_id=call.execution_id)
        said.info(event + ".started")

        def progress(counters: Mapping[str, int]) -> None:
            said.info(event + ".progress", **counters)

        try:
            outcome = await self._work[call.name](call.scheduled_at, progress)
        except Exception as error:  # noqa: BLE001 - the edge of a run: it fails, the job goes on
            said.exception(event + ".failed")
            return JobEnded(call.execution_id, "failed", "{}", type(error).__name__, self._clock())
        said.info(event + ".completed", **outcome)
        return JobEnded(
            call.execution_id, "completed", json.dumps(dict(outcome)), None, self._clock()
        )


class Upkeep:
    """The work of the jobs that are built."""

    def __init__(
        self, database: Database, post: Callable[[Sequence[Tell]], Awaitable[int]]
    ) -> None:
        self._database = database
        self._post = post

    def work(self) -> Mapping[str, Work]:
        """List it by the jobs' names."""
        return {
            "sync-verified-revenue": self.sync_verified_revenue,
            "prune-webhook-deliveries": partial(self.prune, retention.WEBHOOK_DELIVERIES),
            "prune-audit-log": partial(self.prune, retention.AUDIT_LOG),
            "retention-sweep": self.sweep,
        }

    async def sync_verified_revenue(
        self, scheduled_at: datetime, progress: Progress
    ) -> Mapping[str, int]:
        """Tell every listing that wants it to sync, spread over the hour."""
        due = await listings.due_for_sync(self._database)
        told = 0
        for at in range(0, len(due), retention.BATCH):
            tells = [
                Tell(
                    listing(id),
                    SyncDue(scheduled_at),
                    key=f"sync:{id}:{scheduled_at.isoformat()}",
                    due_at=scheduled_at + listings.jitter(id),
                )
                for id in due[at : at + retention.BATCH]
            ]
            told += await self._post(tells)
            progress({"listings": len(due), "scheduled": told})
        return {"listings": len(due), "scheduled": told}

    async def prune(self, sql: str, _: datetime, progress: Progress) -> Mapping[str, int]:
        """Delete what one statement finds, a batch at a time."""
        deleted = 0
        async for count in retention.batches(self._database, sql):
            deleted += count
            progress({"deleted": deleted})
        return {"deleted": deleted}

    async def sweep(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Delete what has served its time, and tell listings that were left alone for too long."""
        swept: dict[str, int] = {}
        for name, sql in retention.SWEPT.items():
            async for count in retention.batches(self._database, sql):
                swept[name] = swept.get(name, 0) + count
            progress(swept)
        tells = [
            Tell(listing(id), ClockTick(scheduled_at), key=f"tick:{id}:{scheduled_at.isoformat()}")
            for id in await listings.left_alone(self._database, scheduled_at - LEFT_ALONE)
        ]
        for at in range(0, len(tells), retention.BATCH):
            await self._post(tells[at : at + retention.BATCH])
        return {**swept, "listingsLeftAlone": len(tells)}
