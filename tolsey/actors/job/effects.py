"""The work of jobs, outside every mailbox; its counters come back as the run's outcome."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import structlog

from tolsey.actors.job.messages import JobEnded, RunJob
from tolsey.runtime.messages import Call, Message

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
