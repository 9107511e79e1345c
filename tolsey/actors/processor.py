"""What is asked of the payment processor: a port as a Protocol, and the values it exchanges.

Amounts are integer cents of USD before tax. Every request that changes something carries a business
key, under which the processor does it once however often it is asked (rules/payments#requests).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.refusals import PaymentRequired, Refusal, Unprocessable


class ProcessorError(Exception):
    """The payment processor did not do what it was asked; `message` is safe to show the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ProcessorUnreachable(ProcessorError):  # noqa: N818 - a state of the world, not our fault
    """No usable answer after the retries: whether it was done is unknown, the same key asks again."""


class ProcessorBusy(ProcessorUnreachable):
    """The processor takes no more requests for now: nothing was done, ask after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProcessorRefused(ProcessorError):  # noqa: N818 - the processor's answer
    """The processor will not do this; `code` is its own code, empty when it named none."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class CardRefused(ProcessorRefused):
    """The customer's card was declined or wants its owner; nothing was changed."""


def refusal_of(error: ProcessorError) -> Refusal:
    """Say what the payment processor's refusal means for whoever asked us (rules/payments#requests)."""
    match error:
        case CardRefused():
            return PaymentRequired(error.message, code="card_refused", processorCode=error.code)
        case ProcessorRefused():
            return Unprocessable(error.message, code="processor_rejected", processorCode=error.code)
        case ProcessorBusy():
            wait = error.retry_after
            return Refusal(error.message, status=429, code="processor_busy", retryAfter=wait)
        case _:
            return Refusal(error.message, status=502, code="processor_unreachable")


@dataclass(frozen=True, slots=True)
class Buyer:
    """Whose checkout it is; `customer_id` once the processor knows the organization."""

    organization_id: str
    customer_id: str | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a hosted page sends the browser when it is done, and when the buyer turns back."""

    success_url: str
    cancel_url: str


@dataclass(frozen=True, slots=True)
class Hosted:
    """A page of the processor's, made for one visit: its id there and its address."""

    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Refunded:
    """A refund, and what its payment came to with it: paid with tax, given back in all."""

    id: str
    total_cents: int
    refunded_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """What a change of a subscription starts from: its one item, price and period."""

    subscription_id: str
    item_id: str
    price_id: str
    period_start: datetime
    period_end: datetime
    schedule_id: str | None


@dataclass(frozen=True, slots=True)
class ChargePreview:
    """What a change would charge at once: the sum with tax, the tax in it, and when."""

    total_cents: int
    tax_cents: int
    at: datetime


class PaymentProcessor(Protocol):
    """The processor, with the platform's own key.

    Every method may raise ProcessorUnreachable and ProcessorRefused; without a key the adapter
    raises MissingCredential naming `PAYMENTS_SECRET_KEY`.
    """

    async def subscription_checkout(
        self, buyer: Buyer, price_id: str, plan: str, cadence: str, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which a plan is bought."""
        ...

    async def credits_checkout(
        self, buyer: Buyer, credits_cents: int, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which credits are bought; the metadata says the cents before tax."""
        ...

    async def sponsor_checkout(
        self, organization_id: str | None, cents: int, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which a sponsor pays; no tax id is asked."""
        ...

    async def close_checkout(self, session_id: str, *, key: str) -> str | None:
        """Close the page on which a plan is bought; names the subscription bought on it, if any."""
        ...

    async def portal(self, customer_id: str, return_url: str, *, yearly: bool) -> Hosted:
        """Make a visit to the billing portal, with yearly prices or without."""
        ...

    async def preview_upgrade(self, held: Subscribed, price_id: str) -> ChargePreview:
        """Tell what `upgrade` would charge if it were asked for now."""
        ...

    async def upgrade(self, held: Subscribed, price_id: str, *, key: str) -> None:
        """Change the price at once: a new cycle and its invoice, paid or nothing (CardRefused).

        What was to end goes on.
        """
        ...

    async def downgrade(
        self, held: Subscribed, price_id: str, plan: str, cadence: str, *, key: str
    ) -> str:
        """Change the price at the end of the period, without proration; answers the schedule's id."""
        ...

    async def next_price_id(self, schedule_id: str) -> str | None:
        """Name the price that a schedule goes over to when the period ends, or None."""
        ...

    async def release(self, schedule_id: str, *, key: str) -> None:
        """Take a change back that waits for the end of the period; the subscription goes on."""
        ...

    async def cancel(
        self, subscription_id: str, *, feedback: str | None, comment: str | None, key: str
    ) -> None:
        """End the subscription with its period."""
        ...

    async def resume(self, subscription_id: str, *, key: str) -> None:
        """Take a cancellation back before the period ends."""
        ...

    async def end_now(self, subscription_id: str, *, key: str) -> None:
        """End the subscription at once, without proration: its payment is being refunded."""
        ...

    async def refund(
        self, payment_ref: str, cents: int | None, *, organization_id: str | None, key: str
    ) -> Refunded:
        """Give a payment back, whole or in part."""
        ...

    async def subscription(self, subscription_id: str) -> SubscriptionFacts:
        """Read a subscription as it is now, with all its items."""
        ...

    async def invoice(self, invoice_id: str) -> InvoiceFacts:
        """Read an invoice as it is now, with all its lines and its payment."""
        ...

    async def dispute(self, dispute_id: str) -> DisputeFacts:
        """Read a dispute as it is now."""
        ...

    async def invoice_of_payment(self, payment_intent_id: str) -> str | None:
        """Name the invoice that a payment paid, or None (`GET /v1/invoice_payments`)."""
        ...

    async def undelivered_events(self, types: Sequence[str], since: datetime) -> Sequence[str]:
        """Name the events since then that no endpoint of ours took (`GET /v1/events`)."""
        ...

    async def open_payout_account(self, user_id: str, email: str, *, key: str) -> AccountFacts:
        """Make a payout account of the Express kind (controller form)."""
        ...

    async def onboarding_link(self, account_id: str, return_url: str, refresh_url: str) -> str:
        """Make the one-time address on which its owner says who they are."""
        ...

    async def dashboard_link(self, account_id: str) -> str:
        """Make the one-time address of the account's own dashboard."""
        ...

    async def payout_account(self, account_id: str) -> AccountFacts:
        """Read a payout account as it is now."""
        ...
