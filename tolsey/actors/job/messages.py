"""What a job can be asked."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.actors.job import KIND
from tolsey.runtime.messages import ActorId, Call, LaneName, Message
from tolsey.storage.records.runtime.executions import Execution


def job(name: str) -> ActorId:
    """Address a job."""
    return ActorId(KIND, name)


@dataclass(frozen=True, slots=True)
class Tick(Message[Execution]):
    """The job is due. The reply is its run for that due time, when it has ended."""

    due_at: datetime
    execution_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TickOfNewJob(Message[Execution]):
    """As `Tick`, of a job that the release before has not: a process of that release leaves its row alone."""

    due_at: datetime
    execution_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RunNow(Message[Execution]):
    """An operator wants a run now. The reply is that run, when it has ended."""

    execution_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RunJob(Call["JobEnded"]):
    """Do a job's work."""

    lane: ClassVar[LaneName] = "job"
    deadline_seconds: ClassVar[float] = 12 * 3600.0

    name: str
    execution_id: str
    scheduled_at: datetime

    def given_up(self, why: str, at: datetime) -> "JobEnded":
        """End the run as failed, so that the job can be asked again."""
        return JobEnded(
            execution_id=self.execution_id, status="failed", outcome="{}", error=why, at=at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Message[None]):
    """A run is over. `outcome` is JSON text with its counters."""

    execution_id: str
    status: str
    outcome: str
    error: str | None
    at: datetime
