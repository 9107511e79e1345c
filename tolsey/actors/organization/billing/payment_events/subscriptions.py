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


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedItem:
    """One price that is subscribed to, and the period that runs."""

    item_id: str
    price_id: str
    quantity: int
    period_start: datetime
    period_end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
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
        subscription_id=identifier(body),
        said=metadata(body),
        customer_id=reference(body, "customer"),
        status=word(body, "status"),
        items=tuple(_item(item, body, n) for n, item in enumerate(items)),
        has_all_items=has_all_items,
        has_pending_update=bool(table(body, "pending_update")),
        cancel_at_period_end=flag(body, "cancel_at_period_end", absent=False),
        cancel_at=moment(body, "cancel_at"),
        canceled_at=moment(body, "canceled_at"),
        ended_at=moment(body, "ended_at"),
        schedule_id=reference(body, "schedule"),
        latest_invoice_id=reference(body, "latest_invoice"),
        pending_until=moment(table(body, "pending_update"), "expires_at"),
    )


def _item(body: Body, subscription: Body, n: int) -> SubscribedItem:
    with within(f"items.data.{n}"):
        price_id = reference(body, "price") or reference(body, "plan")
        if price_id is None:
            raise Unreadable("price", "missing")
        holder = body if body.get("current_period_end") is not None else subscription
        quantity = number(body, "quantity")
        return SubscribedItem(
            item_id=identifier(body),
            price_id=price_id,
            quantity=1 if quantity is None else quantity,
            period_start=instant(holder, "current_period_start"),
            period_end=instant(holder, "current_period_end"),
        )
