"""Payments and subscriptions of a seller's customers, for the tests of what they come to."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from tolsey.storage.records.selling.revenue import (
    PulledCharge,
    PulledItem,
    PulledPrice,
    PulledSubscription,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NUMBERS = count(1)


def charge(customer: str | None = "cus_a", cents: int = 1_000, **changed: Any) -> PulledCharge:
    given: dict[str, Any] = {
        "charge_id": f"ch_{next(NUMBERS)}",
        "created_at": NOW - 10 * DAY,
        "currency": "USD",
        "succeeded": True,
        "live": True,
        "captured": cents,
        "refunded": 0,
        "customer": customer,
    }
    return PulledCharge(**{**given, **changed})


def price(cents: int = 1_000, **changed: Any) -> PulledPrice:
    given: dict[str, Any] = {
        "currency": "USD",
        "interval": "month",
        "interval_count": 1,
        "metered": False,
        "unit_amount": Decimal(cents),
    }
    return PulledPrice(**{**given, **changed})


def item(cents: int = 1_000, quantity: int = 1, **changed: Any) -> PulledItem:
    of_item = {
        name: changed.pop(name)
        for name in ("discounts", "inclusive_tax_percent")
        if name in changed
    }
    return PulledItem(price=price(cents, **changed), quantity=quantity, **of_item)


def subscription(customer: str = "cus_a", *items: PulledItem, **changed: Any) -> PulledSubscription:
    given: dict[str, Any] = {
        "subscription_id": f"sub_{next(NUMBERS)}",
        "status": "active",
        "currency": "USD",
        "customer": customer,
        "items": items or (item(),),
        "started_at": NOW - 100 * DAY,
        "period_start": NOW - 10 * DAY,
    }
    return PulledSubscription(**{**given, **changed})
