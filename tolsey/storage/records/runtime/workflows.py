"""Workflows that run, as the turns of their organization write them down."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.owners import OF_ORGANIZATION
from tolsey.storage.tables import Age, stored


@stored(
    "workflow_claims",
    key=("organization_id", "id"),
    retention=Age(column="lease_until", interval="7 days"),
    swept="workflowClaims",
    belongs=OF_ORGANIZATION,
    export="workflows",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowClaim:
    """A workflow's place among those an organization may run; lost when its lease ends."""

    organization_id: str
    id: str
    kind: str
    started_at: datetime
    lease_until: datetime
    ended_at: datetime | None
