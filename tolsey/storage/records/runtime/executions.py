"""Runs of scheduled jobs: CronExecution of the specification."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ExecutionStarted:
    """A run that begins; one for each job and due time."""

    id: str
    job: str
    scheduled_at: datetime
    trigger: str
    started_at: datetime
    status: str = "running"


@dataclass(frozen=True, slots=True)
class Execution:
    """A run as it now is. `outcome` is JSON text with the run's counters."""

    id: str
    job: str
    scheduled_at: datetime
    trigger: str
    started_at: datetime
    status: str = "running"
    finished_at: datetime | None = None
    outcome: str | None = None
    error: str | None = None
