"""What providers of mail, code and messages told us (rules/service#provider-events)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.tables import Age, Sealed, stored


class ProviderEventState(StrEnum):
    """What became of an event."""

    KEPT = "kept"
    """It is here to be looked at, and changes nothing."""
    WAITING = "waiting"
    APPLIED = "applied"
    FAILED = "failed"
    """Its call lies with the dead letters, and can be made again."""


@stored(
    "provider_events",
    key=("provider", "event_id"),
    retention=Age(column="received_at", interval="7 days"),
    swept="providerEvents",
    nobodys="Sealed, and for a week: what it changes stands with whom it is about.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEvent:
    """One event; its unique row is what makes a second one a duplicate."""

    provider: str
    event_id: str
    type: str
    sealed_body: Annotated[str, Sealed] = field(repr=False)
    state: ProviderEventState
    why: str | None = None
    received_at: datetime
    settled_at: datetime | None = None
