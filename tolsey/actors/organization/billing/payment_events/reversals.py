"""Money that goes back: refunds and disputes."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tolsey.actors.bodies import Unreadable
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import (
    currency,
    flag,
    identifier,
    paid_cents,
    present,
    reference,
    text,
    word,
)
from tolsey.actors.organization.billing.payment_events.metadata import Metadata, metadata

Standing: TypeAlias = Literal["open", "lost", "won"]

STANDINGS: Final[dict[str, Standing]] = {
    "warning_needs_response": "open",
    "warning_under_review": "open",
    "needs_response": "open",
    "under_review": "open",
    "appeal_needs_response": "open",
    "appeal_under_review": "open",
    "lost": "lost",
    "won": "won",
    # An inquiry that ends takes no money (rules/payments#shapes).
    "warning_closed": "won",
    # Both end with a refund, which takes the credits under its own event.
    "prevented": "won",
    "charge_refunded": "won",
}
"""What a dispute's status means for the credits: held back, gone, or given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundFacts:
    """A charge after a refund; `refunded_cents` is all that was ever refunded of it."""

    charge_id: str
    said: Metadata
    payment_intent_id: str | None
    customer_id: str | None
    currency: str
    total_cents: int
    refunded_cents: int
    is_disputed: bool

    @property
    def payment_ref(self) -> str:
        """The payment that the refund is of; a charge without one stands for itself."""
        return self.payment_intent_id or self.charge_id

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this charge."""
        return present(self.charge_id, self.payment_intent_id, self.customer_id)

    @property
    def needs_organization(self) -> bool:
        """Whether it waits until its organization is known."""
        return self.said.needs_organization


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeFacts:
    """A dispute as it was when the event happened; it names its payment and nobody's customer."""

    dispute_id: str
    said: Metadata
    charge_id: str | None
    payment_intent_id: str | None
    currency: str
    disputed_cents: int
    status: str
    reason: str | None

    @property
    def standing(self) -> Standing:
        """What the dispute means for the credits now."""
        return STANDINGS[self.status]

    @property
    def payment_ref(self) -> str | None:
        """The payment that is disputed."""
        return self.payment_intent_id or self.charge_id

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this dispute."""
        return present(self.dispute_id, self.charge_id, self.payment_intent_id)

    @property
    def needs_organization(self) -> bool:
        """Nothing can be done about a dispute before its organization is known."""
        return True


def read_refund(envelope: EventEnvelope) -> RefundFacts:
    """Read a refunded charge; one refunded beyond its amount is refused."""
    body = envelope.object
    total, refunded = paid_cents(body, "amount"), paid_cents(body, "amount_refunded")
    if refunded > total:
        raise Unreadable("amount_refunded", "more than the charge")
    return RefundFacts(
        charge_id=identifier(body),
        said=metadata(body),
        payment_intent_id=reference(body, "payment_intent"),
        customer_id=reference(body, "customer"),
        currency=currency(body),
        total_cents=total,
        refunded_cents=refunded,
        is_disputed=flag(body, "disputed", absent=False),
    )


def read_dispute(envelope: EventEnvelope) -> DisputeFacts:
    """Read a dispute; a status whose meaning is not known, or no payment at all, is refused."""
    body = envelope.object
    status = word(body, "status")
    if status not in STANDINGS:
        raise Unreadable("status", "not a known status")
    facts = DisputeFacts(
        dispute_id=identifier(body),
        said=metadata(body),
        charge_id=reference(body, "charge"),
        payment_intent_id=reference(body, "payment_intent"),
        currency=currency(body),
        disputed_cents=paid_cents(body, "amount"),
        status=status,
        reason=text(body, "reason", 100),
    )
    if facts.payment_ref is None:
        raise Unreadable("payment_intent", "neither this nor a charge")
    return facts
