"""What an organization can be asked about what it pays for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from tolsey.actors.organization import plans
from tolsey.actors.organization.plans import Cadence, Offer
from tolsey.runtime.messages import Message
from tolsey.storage.records.runtime.operations import Operation

ALIVE = frozenset({"incomplete", "trialing", "active", "past_due", "unpaid", "paused"})
"""The states in which a subscription still is one: a second must not be bought beside it."""


@dataclass(frozen=True, slots=True)
class PricedOffer:
    """A price of the processor and the offer it pays for, as the settings named it when the message was sent."""

    price_id: str
    plan: str
    cadence: str

    @property
    def offer(self) -> Offer:
        """Return the offer that the price pays for."""
        return Offer(plans.BY_CODE[self.plan], Cadence(self.cadence))


def list_priced_offers(price_ids: Mapping[str, tuple[str, ...]]) -> tuple[PricedOffer, ...]:
    """List every recognised price, sold or not, from the price ids by the settings that name them."""
    # A subscription stays on the price it was bought at when a new price is sold (rules/plans#prices).
    return tuple(
        PricedOffer(id, offer.plan.code, offer.cadence.value)
        for offer in plans.OFFERS
        for id in price_ids.get(offer.price.setting, ())
    )


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of an event; `why` says it of one that changed nothing or could not be applied.

    `parked` waits for an operator, since money came and nothing says what for. `stale` means that the
    processor is asked first: the event says too little, or has been overtaken since.
    """

    state: Literal["applied", "ignored", "parked", "failed", "stale"]
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPaymentEvent(Message[Applied]):
    """The processor told something: one turn does all of it, and settles the event's row.

    `facts` is JSON text as `payment_events.catalogue` keeps it. `payment_ref` names the payment in
    the ledger, where the facts alone cannot: the invoice that a refunded or disputed payment paid.
    `asked_after` is set when the facts are not the event's but the processor's answer of just now:
    it is the subscription's `seen_at` before it was asked. `is_over` says that the end of the event's
    subscription was told before: what is told of it since brings no plan back. `next_price_id` is what
    the subscription's schedule goes over to when the period ends.
    """

    event_id: str
    type: str
    livemode: bool
    created_at: datetime
    facts: str
    at: datetime
    offers: tuple[PricedOffer, ...] = ()
    payment_ref: str | None = None
    is_asked: bool = False
    asked_after: datetime | None = None
    is_over: bool = False
    next_price_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionView:
    """What an organization pays for, and what of it changes next.

    `plan` is the plan in effect. `price_id` is what the subscription is to, which is more than the
    plan while an upgrade's invoice is open. `dunning_url` is where an open invoice can be paid.
    `paid_invoice_id` and `paid_at` name the newest paid invoice.
    """

    organization_id: str
    created_at: datetime
    plan: str
    cadence: str | None = None
    customer_id: str | None = None
    subscription_id: str | None = None
    item_id: str | None = None
    price_id: str | None = None
    status: str | None = None
    period_start: datetime | None = None
    period_end: datetime | None = None
    cancel_at_period_end: bool = False
    schedule_id: str | None = None
    next_plan: str | None = None
    next_cadence: str | None = None
    paid_invoice_id: str | None = None
    paid_at: datetime | None = None
    paid_until: datetime | None = None
    dunning_since: datetime | None = None
    dunning_url: str | None = None

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription to change, and none can be bought beside it."""
        return self.subscription_id is not None and self.status in ALIVE


@dataclass(frozen=True, slots=True)
class ReadSubscription(Message[SubscriptionView]):
    """Somebody looks at what the organization pays for. 404 when there is no such organization."""

    at: datetime


BillingAct = Literal[
    "checkout.started",
    "portal.opened",
    "credits.purchase_started",
    "sponsor.started",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBillingAct(Message[None]):
    """A person asked for something that is paid: it is written down, with plain values as `detail`."""

    act: BillingAct
    user_id: str
    at: datetime
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan(Message[Operation]):
    """An admin chooses a plan: up at once and paid, down when the period ends.

    The plan that runs takes back what was to come. `price_ids` are the prices that are sold now, by
    the variables that name them. `offers` are all prices by which the present plan is recognised;
    the release before this one sends none.
    """

    operation_id: str
    plan: str
    cadence: str
    price_ids: dict[str, str]
    user_id: str
    at: datetime
    offers: tuple[PricedOffer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelPlan(Message[Operation]):
    """An admin lets the subscription end with its period, and may say why."""

    operation_id: str
    price_ids: dict[str, str]
    user_id: str
    at: datetime
    feedback: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveProcessor(Message[bool]):
    """The organization is deleted: what is left of its subscription ends at once. False where nothing is."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RefundBegun:
    """What is to be done at the processor: refund (unless `is_returned`), and end a subscription."""

    is_returned: bool
    subscription_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBackPayment(Message[Operation]):
    """An operator gives a payment back whole, or ends the subscription of one that went back.

    Refused with the reason by rules/plans#refunds. What is left of the payment's credits
    is pinned until its refund is observed or refused, or nobody tries it any more.
    """

    operation_id: str
    payment_ref: str
    reason: str
    user_id: str
    at: datetime
