"""Invoices: what was paid for which period, or why it was not paid.

Two shapes are read: since API version 2025-03-31 an invoice names its subscription under `parent`
and its prices under `pricing`; before, both stood on the invoice and its lines.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.actors.bodies import Body, Unreadable, table
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import (
    cents,
    currency,
    flag,
    identifier,
    instant,
    listed,
    moment,
    number,
    present,
    reference,
    rows,
    text,
    within,
    word,
)
from tolsey.actors.organization.billing.payment_events.metadata import Metadata, metadata

PAID: Final = "paid"
URL_CHARACTERS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """One price over one period; the amount is below zero for time that was paid and not used."""

    price_id: str | None
    amount_cents: int
    period_start: datetime
    period_end: datetime
    is_proration: bool
    subscription_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceFacts:
    """An invoice as it was when the event happened.

    `is_paid` is the only proof of payment; `has_all_lines` is False when the event left lines out.
    """

    invoice_id: str
    said: Metadata
    customer_id: str | None
    subscription_id: str | None
    payment_intent_id: str | None
    charge_id: str | None
    billing_reason: str | None
    status: str
    is_paid: bool
    currency: str
    pretax_cents: int
    total_cents: int
    paid_cents: int
    lines: tuple[InvoiceLine, ...]
    has_all_lines: bool
    attempts: int
    next_attempt_at: datetime | None
    hosted_url: str | None
    written_at: datetime | None = None

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this invoice."""
        return present(
            self.invoice_id,
            self.customer_id,
            self.subscription_id,
            self.payment_intent_id,
            self.charge_id,
        )

    @property
    def needs_organization(self) -> bool:
        """Nothing can be done about an invoice before its organization is known."""
        return True


def read_invoice(envelope: EventEnvelope) -> InvoiceFacts:
    """Read an invoice of either shape; one that is neither is refused."""
    body = envelope.object
    lines, has_all_lines = listed(body, "lines")
    subscription_id, said = _subscription(body, lines)
    status = word(body, "status")
    total = cents(body, "total")
    return InvoiceFacts(
        invoice_id=identifier(body),
        said=said,
        customer_id=reference(body, "customer"),
        subscription_id=subscription_id,
        payment_intent_id=reference(body, "payment_intent"),
        charge_id=reference(body, "charge"),
        billing_reason=text(body, "billing_reason", 100),
        status=status,
        is_paid=status == PAID and cents(body, "amount_remaining") == 0,
        currency=currency(body),
        pretax_cents=_pretax(body, total),
        total_cents=total,
        paid_cents=cents(body, "amount_paid"),
        lines=tuple(_line(line, n) for n, line in enumerate(lines)),
        has_all_lines=has_all_lines,
        attempts=number(body, "attempt_count") or 0,
        next_attempt_at=moment(body, "next_payment_attempt"),
        hosted_url=text(body, "hosted_invoice_url", URL_CHARACTERS),
        written_at=moment(body, "created"),
    )


def _subscription(body: Body, lines: list[Body]) -> tuple[str | None, Metadata]:
    """Find the subscription and what we wrote on it."""
    if "parent" in body:
        with within("parent.subscription_details"):
            details = table(table(body, "parent"), "subscription_details")
            return reference(details, "subscription"), _first_said(details, body)
    if "subscription" not in body:
        raise Unreadable("parent", "neither this nor a subscription")
    details = table(body, "subscription_details")
    return reference(body, "subscription"), _first_said(details, *lines, body)


def _first_said(*holders: Body) -> Metadata:
    found = (metadata(holder) for holder in holders)
    return next((said for said in found if said.organization_id), Metadata())


def _pretax(body: Body, total: int) -> int:
    """Say the amount before tax; an older invoice only says the tax, inside its total."""
    said = number(body, "total_excluding_tax")
    if said is not None:
        return said
    taxes = rows(body, "total_taxes") or rows(body, "total_tax_amounts")
    if taxes:
        return total - sum(cents(tax, "amount") for tax in taxes)
    return total - (number(body, "tax") or 0)


def _line(body: Body, n: int) -> InvoiceLine:
    with within(f"lines.data.{n}"):
        period = table(body, "period")
        parent = body
        price_id = reference(body, "price") or reference(body, "plan")
        if "parent" in body:
            said = table(body, "parent")
            parent = table(said, "subscription_item_details") or table(said, "invoice_item_details")
            price_id = reference(table(table(body, "pricing"), "price_details"), "price")
        return InvoiceLine(
            price_id=price_id,
            amount_cents=cents(body, "amount"),
            period_start=instant(period, "start"),
            period_end=instant(period, "end"),
            is_proration=flag(parent, "proration", absent=False),
            subscription_id=reference(parent, "subscription"),
        )
