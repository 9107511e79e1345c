"""What the processor is asked before an event of its is applied, since the event leaves it out.

An event becomes a message to its organization. Where it says all, its own turn applies it; where it does
not, a call asks the processor, and comes back as `ApplyPaymentEvent`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from tolsey.actors.organization.billing.calls import AWAY
from tolsey.actors.organization.billing.messages import Applied, ApplyPaymentEvent, PricedOffer
from tolsey.actors.organization.billing.payment_events.catalogue import Facts, restore
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.metadata import CREDITS
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.ledger.payments import disputes_of
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.decision import Perform
from tolsey.runtime.messages import Call, LaneName, Message, Patience

STALE: Final = Applied("stale")
TERMINAL: Final = frozenset({"lost", "won"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentEventGivenUp(Message[None]):
    """An event could not be applied, however often that was tried: an operator decides."""

    event_id: str
    type: str
    livemode: bool
    created_at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentEventReceived(Message[Applied]):
    """The processor told something, and may have left out what its organization has to know of it.

    `facts` is JSON text as `payment_events.catalogue` keeps it; `offers` are what all known prices buy.
    """

    event_id: str
    type: str
    livemode: bool
    created_at: datetime
    facts: str
    at: datetime
    offers: tuple[PricedOffer, ...] = ()

    def given_up(self, why: str, at: datetime) -> PaymentEventGivenUp:
        """Leave it to an operator, who may have it applied again."""
        del at
        return PaymentEventGivenUp(
            event_id=self.event_id,
            type=self.type,
            livemode=self.livemode,
            created_at=self.created_at,
            why=why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletePaymentEvent(Call[ApplyPaymentEvent]):
    """Ask the processor for what an event leaves out, for as long as it goes on delivering: three days.

    `seen_at` is as of when the event's subscription is known, `payment_ref` the ledger's name of its
    payment. A dispute `has_ended` when another end of it was told before.
    """

    lane: ClassVar[LaneName] = "processor"
    deadline_seconds: ClassVar[float] = 90.0
    patience: ClassVar[Patience | None] = Patience((2.0, 10.0, 30.0, 120.0), 2_200, AWAY)

    organization_id: str
    event: PaymentEventReceived
    seen_at: datetime | None = None
    payment_ref: str | None = None
    has_ended: bool = False

    def given_up(self, why: str, at: datetime) -> PaymentEventGivenUp:
        """Leave it to an operator, who may have it applied again."""
        return self.event.given_up(why, at)


def as_told(event: PaymentEventReceived, payment_ref: str | None) -> ApplyPaymentEvent:
    """Have an event applied as it was told; `payment_ref` is the payment's name in the ledger."""
    return ApplyPaymentEvent(
        event_id=event.event_id,
        type=event.type,
        livemode=event.livemode,
        created_at=event.created_at,
        facts=event.facts,
        at=event.at,
        offers=event.offers,
        payment_ref=payment_ref,
    )


def lacking(
    state: OrganizationState, event: PaymentEventReceived, payment_ref: str | None
) -> Perform | None:
    """Say what the processor is asked before an event is applied; None when the event says all."""
    facts = restore(event.type, event.facts)
    if isinstance(facts, InvoiceFacts) and facts.is_paid and not facts.has_all_lines:
        return _asked(state, event)
    if isinstance(facts, SubscriptionFacts):
        seen_at = _seen_at(state, facts.subscription_id)
        if facts.schedule_id is not None or not is_news(facts, event.created_at, seen_at):
            return _asked(state, event, seen_at=seen_at)
    if payment_ref is None and paid_invoice(state, facts) is not None:
        return _asked(state, event)
    return None


def outdated(state: OrganizationState, message: ApplyPaymentEvent) -> Perform | None:
    """Say what the processor is asked again; None when what is to be applied holds still.

    The subscription may have moved on since the processor was asked, or its dispute have ended otherwise.
    """
    facts = restore(message.type, message.facts)
    event = PaymentEventReceived(
        event_id=message.event_id,
        type=message.type,
        livemode=message.livemode,
        created_at=message.created_at,
        facts=message.facts,
        at=message.at,
        offers=message.offers,
    )
    if isinstance(facts, SubscriptionFacts) and message.is_asked:
        seen_at = _seen_at(state, facts.subscription_id)
        return None if seen_at == message.asked_after else _asked(state, event, seen_at=seen_at)
    if isinstance(facts, DisputeFacts) and not message.is_asked:
        payment_ref = message.payment_ref or facts.payment_ref or ""
        ended = ends_of(state, payment_ref, facts.dispute_id)
        if ended and facts.standing in TERMINAL - ended:
            return _asked(state, event, payment_ref=payment_ref, has_ended=True)
    return None


def paid_invoice(state: OrganizationState, facts: Facts) -> str | None:
    """Name the payment of which it has to be found out whether it paid a subscription's invoice.

    The ledger knows that one by its invoice, which refunds and disputes do not name
    (rules/payments#shapes).
    """
    if not isinstance(facts, RefundFacts | DisputeFacts) or facts.said.kind == CREDITS:
        return None
    known = state.credits.payments.get(facts.payment_ref or "")
    return None if known is not None and known.granted else facts.payment_intent_id


def is_news(facts: SubscriptionFacts, created_at: datetime, seen_at: datetime | None) -> bool:
    """Tell whether an event itself says how a subscription is, and is newer than what is known."""
    return facts.has_all_items and (seen_at is None or seen_at < created_at)


def ends_of(state: OrganizationState, payment_ref: str, dispute_id: str) -> frozenset[str]:
    """List the ends that were told of a dispute."""
    known = state.credits.payments.get(payment_ref)
    disputes = disputes_of(known) if known else []
    return TERMINAL & {one.status for one in disputes if one.id == dispute_id}


def _asked(state: OrganizationState, event: PaymentEventReceived, **known: Any) -> Perform:
    call = CompletePaymentEvent(organization_id=state.organization_id, event=event, **known)
    return Perform(call, key=f"payment_event:{event.event_id}")


def _seen_at(state: OrganizationState, subscription_id: str) -> datetime | None:
    known = state.subscription
    is_known = known is not None and known.subscription_id == subscription_id
    return known.seen_at if known is not None and is_known else None
