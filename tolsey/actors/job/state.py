"""What a job remembers between turns."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.records.runtime.executions import Execution


@dataclass(frozen=True, slots=True)
class Waiting:
    """A tick that came while a run was going on: only the latest is kept."""

    due_at: datetime
    execution_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A job's runs: the one that goes on, the last that was scheduled, the tick that waits."""

    name: str
    running: Execution | None = None
    last: Execution | None = None
    waiting: Waiting | None = None
