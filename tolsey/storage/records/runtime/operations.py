"""What people asked for that takes calls to the outside."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from tolsey.storage.owners import OF_ORGANIZATION, OF_USER
from tolsey.storage.tables import Age, Integer, Jsonb, Personal, stored

Stage = Literal["running", "done", "refused", "failed"]
"""`refused` was not done and would not be; `failed` was tried for as long as it was worth it."""


@stored(
    "operations",
    key=("id",),
    # Whoever asked may look for seven days (rules/requests#operations).
    retention=Age(column="finished_at", interval="7 days"),
    swept="operations",
    belongs=(OF_ORGANIZATION, OF_USER),
    export="operations",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What somebody asked an actor for, and how far it is.

    `wanted` and `result` are JSON text; `status`, `code` and `detail` are those of the refusal that
    whoever asked gets instead of a result.
    """

    id: str
    organization_id: str
    user_id: Annotated[str, Personal.USER]
    kind: str
    subject: str
    state: Stage
    wanted: Annotated[str, Jsonb]
    created_at: datetime
    result: Annotated[str | None, Jsonb] = None
    status: Annotated[int | None, Integer] = None
    code: str | None = None
    detail: str | None = None
    finished_at: datetime | None = None
