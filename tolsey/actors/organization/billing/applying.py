"""Applying what the payment processor said: one turn does all of an event, or says why it does not.

What an event does is a function of what is known and what it says, so that any order and any
repetition comes to the same (rules/payments#events). Nothing is granted that no event proves paid.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import acts, completing, subscription
from tolsey.actors.organization.billing.completing import PaymentEventGivenUp
from tolsey.actors.organization.billing.messages import ALIVE, Applied, ApplyPaymentEvent
from tolsey.actors.organization.billing.payment_events.catalogue import restore
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts, InvoiceLine
from tolsey.actors.organization.billing.payment_events.metadata import CREDITS, Metadata
from tolsey.actors.organization.billing.payment_events.purchases import CheckoutFacts, PaymentFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.billing.subscription import ProvenPeriod
from tolsey.actors.organization.ledger import lots, payments
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.messages import (
    Dispute,
    GrantCredits,
    PaymentObserved,
    ResetAllowance,
    Standing,
)
from tolsey.actors.organization.plans import Offer
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.payment_event import PaymentEventSettled
from tolsey.storage.records.money.subscription import SubscriptionRecord

GRANTING: Final = frozenset(
    {"subscription", "subscription_create", "subscription_cycle", "subscription_update"}
)
"""Why an invoice of a subscription is written; `subscription` is the word of old API versions."""

ENDED: Final = "customer.subscription.deleted"
RECENT: Final = 16
"""How many subscriptions that ended are remembered, longer than the commit of that takes."""

APPLIED: Final = Applied("applied")
NOT_PAID: Final = Applied("ignored", "not_paid")
NOTHING: Final = Applied("ignored", "nothing_to_apply")
NOTHING_DUE: Final = Applied("applied", "nothing_was_due")
NO_METADATA: Final = Applied("parked", "no_metadata")
NO_SUBSCRIPTION: Final = Applied("ignored", "no_subscription")
NOT_GRANTING: Final = Applied("ignored", "billing_reason")
UNKNOWN_PRICE: Final = Applied("failed", "unknown_price")
NO_ORGANIZATION: Final = Applied("failed", "no_organization")
FOREIGN: Final = Applied("failed", "foreign_organization")
WON_THEN_LOST: Final = Applied("failed", "dispute_won_then_lost")


class EventTurn:
    """What an event has done so far: the state as it becomes, and the rows that tell of it."""

    def __init__(self, state: OrganizationState, message: ApplyPaymentEvent) -> None:
        self.state = state
        self.message = message
        self.records: list[Any] = []
        self.effects: list[Perform] = []
        self.offers: Mapping[str, Offer] = {one.price_id: one.offer for one in message.offers}

    def take(self, decision: Decision[OrganizationState, Standing]) -> None:
        """Let a decision about the credits follow what was decided before it."""
        self.state = decision.state
        self.records += decision.records

    @property
    def subscription(self) -> SubscriptionRecord:
        """What the organization pays for, or nothing yet."""
        known = self.state.subscription
        return known or SubscriptionRecord(organization_id=self.state.organization_id)

    def keep(self, after: SubscriptionRecord) -> None:
        """Remember what the organization pays for, and the plan that follows from it."""
        before = self.state.subscription
        if self.message.is_over and after.subscription_id != self.subscription.subscription_id:
            return  # it has ended, and nothing brings it back beside the one that is known
        offer = subscription.in_effect(after)
        after = replace(
            after,
            plan=offer.plan.code if offer else plans.FREE.code,
            cadence=offer.cadence.value if offer else None,
        )
        if after == before:
            return
        event = subscription.event_of(before, after)
        if before is not None and subscription.is_doubled(before, after):
            self._audit("subscription.replaced", after, other=before.subscription_id)
        if event is not None:
            self._audit(event, after, before=before.plan if before else plans.FREE.code)
        plan = self.state.plan if self.state.plan == plans.CUSTOM.code else after.plan
        self.state = replace(self.state, subscription=after, plan=plan)

    def _audit(self, event: str, after: SubscriptionRecord, **said: Any) -> None:
        organization_id = self.state.organization_id
        subject = after.subscription_id or organization_id
        self.records.append(
            audit_record(
                event,
                subject,
                organization_id,
                "platform",
                plan=after.plan,
                cadence=after.cadence,
                **said,
            )
        )


def apply(
    state: OrganizationState, message: ApplyPaymentEvent
) -> Decision[OrganizationState, Applied]:
    """Do what an event says, and settle its row in the same commit."""
    asked = completing.outdated(state, message)
    if asked is not None:
        return Decision(state, completing.STALE, effects=(asked,))
    facts = restore(message.type, message.facts)
    turn = EventTurn(state, message)
    applied = NO_ORGANIZATION
    if state.exists:
        applied = _foreign(state, facts) or _applied(turn, facts)
    records = (*turn.records, _settled(message, applied))
    return Decision(turn.state, reply=applied, records=records, effects=turn.effects)


def give_up(
    state: OrganizationState, message: PaymentEventGivenUp
) -> Decision[OrganizationState, None]:
    """Say of an event that it could not be applied, until an operator has it applied again."""
    settled = _settled(message, Applied("failed", message.why[:200]))
    return Decision(state, None, records=(settled,))


def _settled(
    message: ApplyPaymentEvent | PaymentEventGivenUp, applied: Applied
) -> PaymentEventSettled:
    return PaymentEventSettled(
        event_id=message.event_id,
        type=message.type,
        livemode=message.livemode,
        created_at=message.created_at,
        state=applied.state,
        why=applied.why,
    )


def payment_of(message: ApplyPaymentEvent) -> str | None:
    """Name the payment whose ledger facts a turn needs."""
    facts = restore(message.type, message.facts)
    if isinstance(facts, InvoiceFacts):
        return facts.invoice_id
    if isinstance(facts, CheckoutFacts | PaymentFacts):
        return facts.payment_intent_id
    if isinstance(facts, RefundFacts | DisputeFacts):
        return message.payment_ref or facts.payment_ref
    return None


def subscription_of(message: ApplyPaymentEvent) -> str | None:
    """Name the subscription that an event tells of."""
    facts = restore(message.type, message.facts)
    return facts.subscription_id if isinstance(facts, InvoiceFacts | SubscriptionFacts) else None


def _foreign(state: OrganizationState, facts: Any) -> Applied | None:
    """Refuse what our own metadata says is another organization's."""
    claimed = facts.said.organization_id
    return FOREIGN if claimed not in {None, state.organization_id} else None


def _applied(turn: EventTurn, facts: Any) -> Applied:
    match facts:
        case CheckoutFacts():
            return _checkout(turn, facts)
        case PaymentFacts():
            return _payment(turn, facts)
        case InvoiceFacts():
            return _invoice(turn, facts)
        case SubscriptionFacts():
            return _subscription(turn, facts)
        case RefundFacts() | DisputeFacts():
            return _reversal(turn, facts)
    return NOTHING


def _checkout(turn: EventTurn, facts: CheckoutFacts) -> Applied:
    if facts.mode == "subscription" and facts.subscription_id is not None:
        turn.keep(subscription.linked(turn.subscription, facts.customer_id, facts.subscription_id))
        return APPLIED
    if facts.said.kind != CREDITS:
        # Money that nothing says the purpose of is parked and never dropped (rules/credits#dangers).
        is_unsaid = facts.is_paid and facts.mode == "payment" and facts.said == Metadata()
        return NO_METADATA if is_unsaid else NOTHING
    if not facts.is_paid or facts.payment_intent_id is None:
        return NOT_PAID
    return _purchase(turn, facts, facts.payment_intent_id, facts.total_cents or 0)


def _payment(turn: EventTurn, facts: PaymentFacts) -> Applied:
    if facts.said.kind != CREDITS:
        return NOTHING
    if not facts.is_paid:
        return NOT_PAID
    return _purchase(turn, facts, facts.payment_intent_id, facts.received_cents)


def _purchase(
    turn: EventTurn, facts: CheckoutFacts | PaymentFacts, payment_ref: str, total_cents: int
) -> Applied:
    """Grant what was bought, before tax, once for its payment however many events tell of it."""
    at, cents = turn.message.at, facts.said.credits_cents or 0
    turn.take(
        payments.observe(
            turn.state,
            PaymentObserved(
                payment_ref=payment_ref,
                credits=cents,
                total=total_cents,
                refunded=0,
                disputes=(),
                at=at,
            ),
        )
    )
    if turn.state.credits.payments[payment_ref].granted == 0:
        grant = GrantCredits(
            key=f"purchase:{payment_ref}",
            kind="purchase",
            amount=cents * plans.MICRO_PER_CENT,
            at=at,
            expires_at=twelve_months_after(at),
            reference=payment_ref,
        )
        turn.take(lots.grant(turn.state, grant))
    return APPLIED


def _invoice(turn: EventTurn, facts: InvoiceFacts) -> Applied:
    if facts.subscription_id is None:
        return NO_SUBSCRIPTION
    created_at = turn.message.created_at
    if not turn.message.type.startswith(("invoice.paid", "invoice.payment_succeeded")):
        if not facts.is_paid:
            _owe(turn, facts)
        return APPLIED
    if not facts.is_paid:
        return NOT_PAID
    if facts.billing_reason not in GRANTING:
        return NOT_GRANTING
    lines = [line for line in facts.lines if line.amount_cents > 0]
    bought = _bought(turn, lines)
    if bought is None:
        return UNKNOWN_PRICE if lines else NOTHING
    turn.keep(subscription.paid(turn.subscription, facts, bought, created_at))
    # Credits follow what was due before the customer's balance paid of it, and the total is that; one
    # of nothing brings none but by an operator's word (rules/payments#events).
    is_due = facts.total_cents > 0
    if is_due:
        _allow(turn, facts, bought, lines)
    return APPLIED if is_due else NOTHING_DUE


def _owe(turn: EventTurn, facts: InvoiceFacts) -> None:
    """Remember an invoice that could not be collected, and tell who may pay; old news tell no one."""
    before = turn.subscription
    turn.keep(subscription.owed(before, facts, turn.message.created_at))
    if turn.subscription == before:
        return
    next_at = facts.next_attempt_at
    call = TellPeople(
        event=MailEvent.PAYMENT_FAILED,
        organization_id=turn.state.organization_id,
        about=f"{facts.invoice_id}:{facts.attempts}",
        facts={
            "minor": str(facts.total_cents - facts.paid_cents),
            "currency": facts.currency,
            "nextAttempt": f"{next_at:%Y-%m-%d}" if next_at else "",
        },
    )
    turn.effects.append(Perform(call, key=f"tell:{call.event}:{call.about}"))


def _bought(turn: EventTurn, lines: list[InvoiceLine]) -> ProvenPeriod | None:
    """Find what was paid: of the prices of the catalogue the highest plan, and its newest period."""
    found = [
        ProvenPeriod(offer, line.period_start, line.period_end)
        for line in lines
        if (offer := turn.offers.get(line.price_id or "")) is not None
    ]
    return max(found, key=lambda one: (one.offer.plan.rank, one.begins_at), default=None)


def _allow(
    turn: EventTurn, facts: InvoiceFacts, bought: ProvenPeriod, lines: list[InvoiceLine]
) -> None:
    """Start the paid period's allowance, or top it up; what was paid with tax is told first."""
    plan, ends_at = bought.offer.plan, subscription.allowance_end(bought)
    reset = ResetAllowance(
        key=f"allowance:{facts.subscription_id}:{ends_at.isoformat()}:{facts.invoice_id}",
        plan=plan.code,
        period_start=bought.begins_at,
        period_end=ends_at,
        allowance=_allowance(turn, facts, bought, lines),
        at=turn.message.at,
        reference=facts.invoice_id,
        renewed_by=None if _is_over(turn, facts) else facts.subscription_id,
    )
    if lots.reset_allowance(turn.state, reset).state is turn.state:
        return  # an older period, or one that has been granted as much
    total = PaymentObserved(
        payment_ref=facts.invoice_id,
        credits=0,
        total=facts.total_cents,
        refunded=0,
        disputes=(),
        at=turn.message.at,
    )
    turn.take(payments.observe(turn.state, total))
    turn.take(lots.reset_allowance(turn.state, reset))


def _is_over(turn: EventTurn, facts: InvoiceFacts) -> bool:
    """Tell whether the end of an invoice's subscription is known."""
    known = turn.subscription
    is_known = known.subscription_id == facts.subscription_id
    return turn.message.is_over or (is_known and known.status not in ALIVE)


def _allowance(
    turn: EventTurn, facts: InvoiceFacts, bought: ProvenPeriod, lines: list[InvoiceLine]
) -> int:
    """Tell what a paid period allows.

    Where only the rest of a period was paid, the allowance rises by no more than that cost: the
    whole month's is not for sale on its last day (rules/plans#allowance).
    """
    allowance = plans.monthly_allowance(bought.offer.plan.code, None)
    of_plan = [one for one in lines if turn.offers.get(one.price_id or "") == bought.offer]
    if not all(one.is_proration for one in of_plan):
        return allowance
    left = [turn.offers.get(one.price_id or "") for one in facts.lines if one.amount_cents < 0]
    before = max(
        (plans.monthly_allowance(one.plan.code, None) for one in left if one is not None), default=0
    )
    paid = sum(one.amount_cents for one in of_plan) * plans.MICRO_PER_CENT
    return min(allowance, before + paid)


def _subscription(turn: EventTurn, facts: SubscriptionFacts) -> Applied:
    message, known = turn.message, turn.subscription
    sold = [one for one in facts.items if one.price_id in turn.offers]
    item = max(sold, key=lambda one: turn.offers[one.price_id].plan.rank, default=None)
    is_over = facts.ended_at is not None or facts.status not in ALIVE
    if item is None and not is_over:
        return UNKNOWN_PRICE
    after = subscription.observed(
        known,
        facts,
        item,
        turn.offers[item.price_id] if item else None,
        message.created_at,
        is_asked=message.is_asked,
    )
    if after.schedule_id == facts.schedule_id:
        after = acts.with_scheduled_offer(after, turn.offers.get(message.next_price_id or ""))
    turn.keep(after)
    if is_over:
        turn.take(lots.unrenewed(turn.state, facts.subscription_id, message.at))
    if message.type == ENDED:
        over = (*turn.state.over, facts.subscription_id)[-RECENT:]
        turn.state = replace(turn.state, over=over)
    return APPLIED


def _reversal(turn: EventTurn, facts: RefundFacts | DisputeFacts) -> Applied:
    """Join a refund or a dispute into what is known of its payment: credits follow it."""
    payment_ref = turn.message.payment_ref or facts.payment_ref or ""
    total, refunded = 0, 0
    disputes: tuple[Dispute, ...] = ()
    if isinstance(facts, RefundFacts):
        total, refunded = facts.total_cents, facts.refunded_cents
    else:
        # Credits that a won dispute gave back are not taken again by a word of ours: a person decides.
        ended = completing.ends_of(turn.state, payment_ref, facts.dispute_id)
        if turn.message.is_asked and "won" in ended and facts.standing != "won":
            return WON_THEN_LOST
        disputes = (Dispute(facts.dispute_id, facts.disputed_cents, facts.standing),)
    seen = PaymentObserved(
        payment_ref=payment_ref,
        credits=0,
        total=total,
        refunded=refunded,
        disputes=disputes,
        at=turn.message.at,
    )
    turn.take(payments.observe(turn.state, seen))
    return APPLIED
