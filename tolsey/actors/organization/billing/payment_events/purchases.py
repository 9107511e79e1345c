"""Checkouts and payments: who bought what, and whether it is paid."""

from dataclasses import dataclass
from typing import Final

from tolsey.actors.bodies import Body, table
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import (
    currency,
    identifier,
    number,
    paid_cents,
    present,
    reference,
    rows,
    text,
    word,
)
from tolsey.actors.organization.billing.payment_events.metadata import Metadata, covered, metadata

PAID: Final = "paid"
SUCCEEDED: Final = "succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutFacts:
    """A checkout that a buyer completed.

    `is_paid` is False while the money is on its way, and for one that needed none: such a checkout
    only tells which customer and subscription are the organization's.
    """

    session_id: str
    said: Metadata
    mode: str
    is_paid: bool
    customer_id: str | None
    subscription_id: str | None
    payment_intent_id: str | None
    invoice_id: str | None
    currency: str | None
    pretax_cents: int | None
    total_cents: int | None

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this checkout."""
        return present(
            self.session_id,
            self.customer_id,
            self.subscription_id,
            self.payment_intent_id,
            self.invoice_id,
        )

    @property
    def needs_organization(self) -> bool:
        """Whether it waits until its organization is known."""
        return self.said.needs_organization


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFacts:
    """A payment that succeeded or failed; `is_paid` tells which."""

    payment_intent_id: str
    said: Metadata
    customer_id: str | None
    charge_id: str | None
    invoice_id: str | None
    status: str
    is_paid: bool
    currency: str
    amount_cents: int
    received_cents: int
    failure_code: str | None
    decline_code: str | None

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this payment."""
        return present(self.payment_intent_id, self.customer_id, self.charge_id, self.invoice_id)

    @property
    def needs_organization(self) -> bool:
        """Whether it waits until its organization is known."""
        return self.said.needs_organization


def read_checkout(envelope: EventEnvelope) -> CheckoutFacts:
    """Read a completed checkout; one paid with less than its credits cost is refused."""
    body = envelope.object
    said = metadata(body)
    is_paid = word(body, "payment_status") == PAID
    if is_paid:
        covered(said, body, "amount_subtotal", "amount_total")
    return CheckoutFacts(
        session_id=identifier(body),
        said=said,
        mode=word(body, "mode"),
        is_paid=is_paid,
        customer_id=reference(body, "customer"),
        subscription_id=reference(body, "subscription"),
        payment_intent_id=reference(body, "payment_intent"),
        invoice_id=reference(body, "invoice"),
        currency=currency(body) if body.get("currency") is not None else None,
        pretax_cents=number(body, "amount_subtotal"),
        total_cents=number(body, "amount_total"),
    )


def read_payment(envelope: EventEnvelope) -> PaymentFacts:
    """Read a payment; one that brought less than its credits cost is refused."""
    body = envelope.object
    said = metadata(body)
    status, received = word(body, "status"), paid_cents(body, "amount_received")
    is_paid = status == SUCCEEDED
    if is_paid:
        covered(said, body, "amount_received")
    failure = table(body, "last_payment_error")
    return PaymentFacts(
        payment_intent_id=identifier(body),
        said=said,
        customer_id=reference(body, "customer"),
        charge_id=_charge(body),
        invoice_id=reference(body, "invoice"),
        status=status,
        is_paid=is_paid,
        currency=currency(body),
        amount_cents=paid_cents(body, "amount"),
        received_cents=received,
        failure_code=text(failure, "code", 100),
        decline_code=text(failure, "decline_code", 100),
    )


def _charge(body: Body) -> str | None:
    """Name the latest charge, which before API version 2022-11-15 headed a list."""
    if "latest_charge" in body:
        return reference(body, "latest_charge")
    charges = rows(table(body, "charges"), "data")
    return reference(charges[0], "id") if charges else None
