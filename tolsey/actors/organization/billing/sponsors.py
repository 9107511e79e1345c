"""What the processor's events tell of sponsors, who pay and are granted nothing."""

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.payment_events.catalogue import Facts
from tolsey.actors.organization.billing.payment_events.purchases import CheckoutFacts, PaymentFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.storage.records.money.payment_event import WaitingEvent
from tolsey.storage.records.money.sponsorships import SponsorDispute, SponsorPayment


def disputed(facts: DisputeFacts) -> SponsorDispute:
    """Read what is told of a dispute of a sponsor's payment."""
    payment_ref = facts.payment_ref or ""
    return SponsorDispute(
        dispute_id=facts.dispute_id,
        payment_ref=payment_ref,
        cents=facts.disputed_cents,
        standing=facts.standing,
    )


def paid(event: WaitingEvent, facts: Facts) -> SponsorPayment | None:
    """Read what a sponsor paid or got back; None while nothing is paid."""
    organization_id, at = event.organization_id, event.created_at
    match facts:
        case CheckoutFacts() if facts.is_paid and facts.payment_intent_id:
            return SponsorPayment(
                payment_ref=facts.payment_intent_id,
                organization_id=organization_id,
                paid_cents=facts.total_cents or 0,
                refunded_cents=0,
                currency=facts.currency or plans.CURRENCY.lower(),
                created_at=at,
            )
        case PaymentFacts() if facts.is_paid:
            return SponsorPayment(
                payment_ref=facts.payment_intent_id,
                organization_id=organization_id,
                paid_cents=facts.received_cents,
                refunded_cents=0,
                currency=facts.currency,
                created_at=at,
            )
        case RefundFacts():
            return SponsorPayment(
                payment_ref=facts.payment_ref,
                organization_id=organization_id,
                paid_cents=facts.total_cents,
                refunded_cents=facts.refunded_cents,
                currency=facts.currency,
                created_at=at,
            )
    return None
