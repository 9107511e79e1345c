"""Subscriptions: what is subscribed to, until when. Nothing here proves a payment.

The period stands on each item since API version 2025-03-31, on the subscription before.
"""

from dataclasses import dataclass
from datetime import datetime

from tolsey.actors.bodies import Body, Unreadable, table
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import (
    flag,
    identifier,
    instant,
    listed,
    moment,
    number,
    present,
    reference,
    within,
    word,
)
from tolsey.actors.organization.billing.payment_events.metadata import Metadata, metadata


@dataclass(frozen=True, slots=True)
class SubscribedItem:
    """One price that is subscribed to, and the period that runs."""

    item_id: str
    price_id: str
    quantity: int
    period_start: datetime
    period_end: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionFacts:
    """A subscription as it was when the event happened.

    While `has_pending_update` holds, a change was asked for whose payment is still open: the items
    are the old ones. It is given up at `pending_until`, and its invoice with it.
    """

    subscription_id: str
    said: Metadata
    customer_id: str | None
    status: str
    items: tuple[SubscribedItem, ...]
    has_all_items: bool
    has_pending_update: bool
    cancel_at_period_end: bool
    cancel_at: datetime | None
    canceled_at: datetime | None
    ended_at: datetime | None
    schedule_id: str | None
    latest_invoice_id: str | None
    pending_until: datetime | None = None

    @property
    def links(self) -> tuple[str, ...]:
        """What belongs to the same organization as this subscription."""
        return present(self.subscription_id, self.customer_id, self.latest_invoice_id)

    @property
    def needs_organization(self) -> bool:
        """Nothing can be done about a subscription before its organization is known."""
        return True


def read_subscription(envelope: EventEnvelope) -> SubscriptionFacts:
    """Read a subscription of either shape; one whose period stands nowhere is refused."""
    body = envelope.object
    items, has_all_items = listed(body, "items")
    return SubscriptionFacts(
        identifier(body),
        metadata(body),
        reference(body, "customer"),
        word(body, "status"),
        tuple(_item(item, body, n) for n, item in enumerate(items)),
        has_all_items,
        bool(table(body, "pending_update")),
        flag(body, "cancel_at_period_end", absent=False),
        moment(body, "cancel_at"),
        moment(body, "canceled_at"),
        moment(body, "ended_at"),
        reference(body, "schedule"),
        reference(body, "latest_invoice"),
        moment(table(body, "pending_update"), "expires_at"),
    )


def _item(body: Body, subscription: Body, n: int) -> SubscribedItem:
    with within(f"items.data.{n}"):
        price_id = reference(body, "price") or reference(body, "plan")
        if price_id is None:
            raise Unreadable("price", "missing")
        holder = body if body.get("current_period_end") is not None else subscription
        quantity = number(body, "quantity")
        return SubscribedItem(
            identifier(body),
            price_id,
            1 if quantity is None else quantity,
            instant(holder, "current_period_start"),
            instant(holder, "current_period_end"),
        )
