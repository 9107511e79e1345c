"""Runs of scheduled jobs: rules/service#scheduled-jobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from tolsey.storage.tables import Age, Jsonb, stored


@stored(
    "cron_executions",
    key=("job", "scheduled_at"),
    claim=True,
    nobodys="Runs of the service's own jobs.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStarted:
    """A run that begins; one for each job and due time."""

    id: str
    job: str
    scheduled_at: datetime
    trigger: str
    started_at: datetime
    status: str = "running"


@stored(
    "cron_executions",
    key=("id",),
    replaces=("status", "finished_at", "outcome", "error"),
    retention=Age(column="finished_at", interval="90 days"),
    swept="executions",
    nobodys="Runs of the service's own jobs.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A run as it now is. `outcome` is JSON text with the run's counters."""

    id: str
    job: str
    scheduled_at: datetime
    trigger: str
    started_at: datetime
    status: str = "running"
    finished_at: datetime | None = None
    outcome: Annotated[str | None, Jsonb] = None
    error: str | None = None
