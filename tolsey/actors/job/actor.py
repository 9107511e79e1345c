"""A scheduled job: one run for each due time, never two at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tolsey.actors.job import KIND, schedule
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import JobEnded, RunNow, Tick, TickOfNewJob
from tolsey.actors.job.state import JobState
from tolsey.runtime.actor import Actor, handles, on
from tolsey.runtime.decision import Decision
from tolsey.runtime.errors import ShardUnavailable
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.runtime import executions


class JobActor(Actor[JobState]):
    """Every scheduled job, by name."""

    kind = KIND
    rank = 3
    decides = (
        on(TickOfNewJob, schedule.tick),
        on(RunNow, schedule.run_now),
        on(JobEnded, schedule.ended),
    )

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, JobState]:
        """Read the runs of jobs back into memory."""
        last = await executions.last(self._database, keys, trigger="schedule")
        running = await executions.running(self._database, keys)
        return {
            key: JobState(
                name=key, running=running.get(key), last=last[key][0] if last[key] else None
            )
            for key in keys
        }

    @handles(Tick)
    async def tick(self, state: JobState, message: Tick) -> Decision[JobState, Execution]:
        """Start the run of a due time; the tick of a job that only a newer release has waits for it."""
        if state.name not in JOBS:
            raise ShardUnavailable(f"its process is of a version that has no job {state.name}")
        return schedule.tick(state, message)

    def changes(self, old: JobState, new: JobState) -> Iterable[Any]:
        """Nothing: runs are records of the decisions themselves."""
        del old, new
        return ()
