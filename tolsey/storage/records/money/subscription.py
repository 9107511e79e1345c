"""What an organization pays for, and on what terms it is here, as its turns write them down."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION, Belongs, RowOwner
from tolsey.storage.tables import Integer, Jsonb, stored


@stored(
    "subscriptions",
    key=("organization_id",),
    # Of the release before, which goes on reading and writing them.
    besides={
        "aside_plan": str | None,
        "aside_cadence": str | None,
        "aside_price_id": str | None,
        "aside_until": datetime | None,
    },
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="subscriptions",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRecord:
    """An organization's subscription: what the processor said last, what is paid, what is owed.

    `plan` and `cadence` are what is in effect; `subscribed_*` is what the subscription is to, as of
    `seen_at`; `paid_*` is the newest period that an invoice proves paid, by `paid_invoice_id`.
    A yearly allowance is granted month by month from `paid_from` until `paid_until`. `next_*` says
    what the schedule `next_schedule_id` brings, while `schedule_id` still names it. What is owed since
    before `settled_at` is not owed from then on, paid or not.
    """

    organization_id: str
    customer_id: str | None = None
    subscription_id: str | None = None
    item_id: str | None = None
    price_id: str | None = None
    status: str | None = None
    plan: str = "free"
    cadence: str | None = None
    subscribed_plan: str | None = None
    subscribed_cadence: str | None = None
    period_start: datetime | None = None
    period_end: datetime | None = None
    cancel_at_period_end: bool = False
    schedule_id: str | None = None
    next_schedule_id: str | None = None
    next_plan: str | None = None
    next_cadence: str | None = None
    seen_at: datetime | None = None
    paid_plan: str | None = None
    paid_cadence: str | None = None
    paid_from: datetime | None = None
    paid_until: datetime | None = None
    paid_at: datetime | None = None
    paid_invoice_id: str | None = None
    dunning_since: datetime | None = None
    dunning_at: datetime | None = None
    dunning_invoice_id: str | None = None
    dunning_url: str | None = None
    refused_changes: Annotated[int, Integer] = 0
    settled_at: datetime | None = None


@stored(
    "organizations",
    key=("id",),
    replaces=("plan", "stores_contracted"),
    besides={
        "rules": Annotated[str, Jsonb],
        "is_administrators": bool,
        "created_at": datetime,
        "deleted_at": datetime | None,
    },
    belongs=Belongs(to=RowOwner.ORGANIZATION, by="id", emptied={"name": "''", "rules": "'{}'"}),
    export="organizations",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationTerms:
    """The plan of an organization that is there; `name` only fills the row that is never made."""

    id: str
    plan: str
    stores_contracted: Annotated[int | None, Integer]
    name: str = ""
