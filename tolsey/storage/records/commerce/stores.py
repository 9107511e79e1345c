"""Stores, as the turns of their organization write them down."""

from dataclasses import dataclass, field
from datetime import datetime

from tolsey.storage.tables import stored


@stored("stores", key=("id",), replaces=("name", "deleted_at"))
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """A store; deleted ones keep their row, so that what refers to them stays readable."""

    id: str
    organization_id: str
    name: str
    sealed_salt: str = field(metadata={"secret": True}, repr=False)
    created_at: datetime
    deleted_at: datetime | None = None
