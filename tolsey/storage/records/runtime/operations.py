"""What people asked for that takes calls to the outside."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Stage = Literal["running", "done", "refused", "failed"]
"""`refused` was not done and would not be; `failed` was tried for as long as it was worth it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What somebody asked an actor for, and how far it is.

    `wanted` and `result` are JSON text; `status`, `code` and `detail` are those of the refusal that
    whoever asked gets instead of a result.
    """

    id: str
    organization_id: str
    user_id: str
    kind: str
    subject: str
    state: Stage
    wanted: str
    created_at: datetime
    result: str | None = None
    status: int | None = None
    code: str | None = None
    detail: str | None = None
    finished_at: datetime | None = None
