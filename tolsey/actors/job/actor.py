"""A scheduled job: one run for each due time, never two at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tolsey.actors.job import KIND, schedule
from tolsey.actors.job.messages import JobEnded, RunNow, Tick
from tolsey.actors.job.state import JobState
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.runtime import executions


class JobActor(Actor[JobState]):
    """Every scheduled job, by name."""

    kind = KIND
    rank = 3

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, JobState]:
        """Read the runs of jobs back into memory."""
        last = await executions.last(self._database, keys, trigger="schedule")
        running = await executions.running(self._database, keys)
        return {
            key: JobState(key, running.get(key), last[key][0] if last[key] else None)
            for key in keys
        }

    def changes(self, old: JobState, new: JobState) -> Iterable[Any]:
        """Nothing: runs are records of the decisions themselves."""
        del old, new
        return ()

    @handles(Tick)
    def tick(self, state: JobState, message: Tick) -> Decision[JobState, Execution]:
        """Start the run of a due time, once."""
        return schedule.tick(state, message)

    @handles(RunNow)
    def run_now(self, state: JobState, message: RunNow) -> Decision[JobState, Execution]:
        """Start a run an operator wants."""
        return schedule.run_now(state, message)

    @handles(JobEnded)
    def ended(self, state: JobState, message: JobEnded) -> Decision[JobState, None]:
        """Write down how a run ended."""
        return schedule.ended(state, message)
