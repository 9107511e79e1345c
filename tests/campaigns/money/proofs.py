"""What happens at the payment processor, and what it proves, in the trade's words.

The proof of an event is said in the trade's words by who made it happen, so that the model which
judges our books never reads an event, and so shares no mistake in reading one.
"""

import calendar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.actors.organization import processor

DAY = 86_400
CENT = 10_000
"""Micro-USD in a cent."""
PLANS = ("free", "pro", "max_5x", "max_20x")
"""Lowest first."""
PRICES = {"pro": (7_900, 75_000), "max_5x": (19_900, 191_000), "max_20x": (39_900, 383_000)}
"""Cents a month and a year (rules/plans#catalogue)."""
ALLOWANCES = {"pro": 49_000_000, "max_5x": 149_000_000, "max_20x": 299_000_000}
"""Micro-USD a month (rules/plans#catalogue)."""


@dataclass(frozen=True, slots=True)
class Bought:
    """Credits are paid for."""

    payment: str
    cents: int
    total: int


@dataclass(frozen=True, slots=True)
class PeriodPaid:
    """A plan's period is paid for, or the rest of one: its credits stand until `ends_at`."""

    invoice: str
    begins_at: datetime
    ends_at: datetime
    allowance: int
    total: int
    subscription: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A subscription has ended: nothing renews its credits any more."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Refunded:
    """So much of a payment was given back, all in all."""

    payment: str
    total: int
    refunded: int


@dataclass(frozen=True, slots=True)
class Disputed:
    """A dispute of a payment stands so."""

    payment: str
    dispute: str
    amount: int
    standing: str


ENDED = "customer.subscription.deleted"
Proof = Bought | PeriodPaid | Ended | Refunded | Disputed


@dataclass(frozen=True, slots=True)
class Happened:
    """One event: as it is sent today, as it was sent before 2025, and what it proves, if anything."""

    id: str
    type: str
    created: int
    body: dict[str, Any]
    old_body: dict[str, Any] | None
    proof: Proof | None

    def sent(self, *, old: bool) -> dict[str, Any]:
        """Write it as an endpoint of that API version gets it."""
        about = self.old_body if old and self.old_body is not None else self.body
        version = processor.OLD if old else processor.NEW
        event = processor.event(self.type, about, created=self.created, api_version=version)
        return {**event, "id": self.id}


@dataclass
class Payment:
    """A payment; `name` is what the books call it: the invoice's where it paid for a plan."""

    intent: str
    name: str
    total: int
    metadata: dict[str, str]
    paid: bool
    cents: int = 0
    refunded: int = 0
    disputes: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def charge(self) -> str:
        return self.intent.replace("pi", "ch")


@dataclass
class Plan:
    """A subscription."""

    id: str
    plan: str
    yearly: bool
    starts: int
    ends: int
    paid_plan: str | None = None
    status: str = "active"
    ending: bool = False
    next_plan: str | None = None
    owed: tuple[str, int] | None = None
    second_thoughts: int | None = None
    """When its owner finds, the morning after a month's last days, that a dearer plan were better."""


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def month_later(at: datetime, months: int) -> datetime:
    """Tell the same day so many months later, or the last day that month has."""
    year, month = at.year + (at.month - 1 + months) // 12, (at.month - 1 + months) % 12 + 1
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def hours(number: float) -> timedelta:
    return timedelta(hours=number)
