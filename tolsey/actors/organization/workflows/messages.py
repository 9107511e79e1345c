"""What an organization can be asked about the workflows that run."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class WorkflowsRunning:
    """How many workflows run, and how many the plan lets run at once (None: no bound)."""

    running: int
    allowed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWorkflow(Message[WorkflowsRunning]):
    """A workflow wants to run, or runs on: its place is its own until `lease_until`.

    Refused with 402 `workflow_limit` and the plan that lets it run.
    """

    workflow_id: str
    kind: str
    at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class ReleaseWorkflow(Message[bool]):
    """A workflow has ended. The reply is False when it held no place any more."""

    workflow_id: str
    at: datetime
