"""An event of the payment processor as it is kept (rules/payments#events)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION
from tolsey.storage.tables import Age, Integer, Jsonb, stored


class EventState(StrEnum):
    """What became of an event.

    `parked` waits until its organization is known, or, when it is, until an operator says what the
    money is for. `failed` could not be read, or not be applied;
    when the processor sends it again it gets another chance.
    """

    NEW = "new"
    APPLIED = "applied"
    IGNORED = "ignored"
    PARKED = "parked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentEvent:
    """One event: which, of what, and the facts read from it as JSON text, never its body.

    `links` are the processor's ids that belong to the same organization; `claimed_by` is the
    organization that our own metadata names.
    """

    event_id: str
    type: str
    object_id: str | None
    account: str | None
    api_version: str | None
    livemode: bool
    created_at: datetime
    state: EventState
    facts: str | None = None
    links: tuple[str, ...] = ()
    claimed_by: str | None = None
    needs_organization: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEvent:
    """An event that is to be applied; `organization_id` is None for one that needs none."""

    event_id: str
    type: str
    account: str | None
    livemode: bool
    created_at: datetime
    facts: str
    organization_id: str | None


@stored(
    "payment_events",
    key=("event_id",),
    conflict="ON CONFLICT (event_id) DO UPDATE SET state = excluded.state, why = excluded.why,"
    " settled_at = now() WHERE payment_events.state IN ('new', 'failed')",
    besides={
        "object_id": str | None,
        "account": str | None,
        "api_version": str | None,
        "facts": Annotated[str | None, Jsonb],
        "links": tuple[str, ...],
        "claimed_by": str | None,
        "organization_id": str | None,
        "tries": Annotated[int, Integer],
        "received_at": datetime,
        "settled_at": datetime | None,
        "attempts": Annotated[int, Integer],
        "due_at": datetime,
    },
    # An operator may have one sent again after months. What was not
    # applied is money that someone waits for, and stays.
    retention=Age(
        column="received_at", interval="400 days", where="state IN ('applied', 'ignored')"
    ),
    swept="paymentEvents",
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="paymentEvents",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentEventSettled:
    """What a turn made of an event, in the turn's own commit.

    What was applied, ignored or parked stays so; what failed may be applied yet.

    `type`, `livemode` and `created_at` only fill the row that is never made.
    """

    event_id: str
    type: str
    livemode: bool
    created_at: datetime
    state: str
    why: str | None
