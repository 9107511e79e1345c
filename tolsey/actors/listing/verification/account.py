"""Definition rv2 for a payment processor: what an account's payments and subscriptions come to.

Rules 2, 8 and 11, and what is flagged (rules/revenue#charges, rules/revenue#flags). No customer is
known by more than an id, no card by more than a hash, and neither outlives the sync.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Final

from tolsey.actors.listing.verification import recurring
from tolsey.actors.listing.verification.revenue import REFUND_RATE, WINDOW, is_spike
from tolsey.storage.records.selling.revenue import (
    CurrencyFigures,
    Measure,
    PulledCharge,
    PulledSubscription,
    SkippedOrders,
)

UNDISPUTED: Final = (None, "won", "warning_closed")
EARLIER_WINDOWS: Final = 2
LOOKBACK: Final = (EARLIER_WINDOWS + 1) * WINDOW
TOP_SHARE: Final = Fraction(1, 2)
TOP_FROM_CUSTOMERS: Final = 5
CARD_SHARE: Final = Fraction(1, 5)
CARD_CUSTOMERS: Final = 3
PRICE_SHARE: Final = Fraction(3, 10)

ISO_UNITS: Final[Mapping[str, Fraction]] = {
    "ISK": Fraction(1, 100),
    "UGX": Fraction(1, 100),
    "MGA": Fraction(100),
}
"""Currencies that the processor counts in other units than ISO 4217."""


@dataclass(slots=True)
class Card:
    """What one card paid in the window, and for whom."""

    paid: int = 0
    customers: set[str] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class AccountSums:
    """Running sums of one currency, in the processor's minor units."""

    revenue: int = 0
    captured: int = 0
    returned: int = 0
    """Refunded, or disputed and not won."""
    payments: int = 0
    before: list[int] = field(default_factory=lambda: [0] * EARLIER_WINDOWS)
    """The revenue of the windows before, the latest first."""
    customers: dict[str, int] = field(default_factory=dict)
    """What each paid in the window."""
    cards: dict[str, Card] = field(default_factory=dict)
    mrr: Fraction = recurring.ZERO
    at_risk: Fraction = recurring.ZERO
    repriced: Fraction = recurring.ZERO
    subscribers: set[str] = field(default_factory=set)
    repriced_subscribers: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a snapshot of two weeks ago said of one currency."""

    mrr: int
    subscribers: int


class AccountTally:
    """Folds payments one by one and then subscriptions, which want to know who paid."""

    def __init__(self, end: datetime) -> None:
        self.end = end
        self.start = end - WINDOW
        self.paid_at: dict[str, datetime] = {}
        self.first_at: datetime | None = None
        self.sums: dict[str, AccountSums] = {}
        self.skipped: dict[str, int] = {}
        self.flags: set[str] = set()

    def add_charge(self, charge: PulledCharge) -> None:
        """Count a payment in its window, or note why it does not count."""
        reason = refused(charge)
        if reason is not None:
            if self.start <= charge.created_at < self.end:
                self._skip(reason)
            return
        if self.first_at is None or charge.created_at < self.first_at:
            self.first_at = charge.created_at
        if charge.customer is not None and stands(charge):
            known = self.paid_at.get(charge.customer, charge.created_at)
            self.paid_at[charge.customer] = max(known, charge.created_at)
        self._count(charge)

    def _count(self, charge: PulledCharge) -> None:
        back = (self.end - charge.created_at) // timedelta(microseconds=1)
        window = WINDOW // timedelta(microseconds=1)
        if back <= 0 or back > window * (EARLIER_WINDOWS + 1):
            return
        sums = self.sums.setdefault(charge.currency, AccountSums())
        earned = value(charge)
        if back > window:
            sums.before[(back - 1) // window - 1] += earned
            return
        sums.revenue += earned
        sums.captured += charge.captured
        sums.returned += charge.refunded if charge.dispute in UNDISPUTED else charge.captured
        sums.payments += 1
        payer = charge.customer or charge.card or charge.charge_id
        sums.customers[payer] = sums.customers.get(payer, 0) + earned
        if charge.card is not None:
            card = sums.cards.setdefault(charge.card, Card())
            card.paid += earned
            card.customers.add(payer)

    def add_subscription(self, subscription: PulledSubscription) -> None:
        """Count a subscription by who paid so far, or note why it does not count."""
        reason = recurring.idle(subscription, self.end) or recurring.unpaid(
            subscription, self.paid_at, self.end
        )
        if reason is not None:
            self._skip(reason)
            return
        reason = recurring.unreadable(subscription)
        if reason is not None:
            self.flags.add(reason)
            self._skip(reason)
            return
        found = recurring.worth(subscription, self.end)
        self.flags |= found.flags
        if found.metered_items:
            self._skip("metered", found.metered_items)
        if found.amount <= 0:
            self._skip("free")
            return
        sums = self.sums.setdefault(subscription.currency, AccountSums())
        sums.mrr += found.amount
        sums.subscribers.add(subscription.customer)
        if subscription.cancels_at_period_end:
            sums.at_risk += found.amount
        if found.repriced:
            sums.repriced += found.repriced
            sums.repriced_subscribers.add(subscription.customer)

    def _skip(self, reason: str, count: int = 1) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    def measure(self, earlier: Mapping[str, Earlier]) -> Measure:
        """Say what it all comes to; `earlier` is what was said two weeks ago, by currency."""
        counted = {
            name: sums for name, sums in sorted(self.sums.items()) if sums.payments or sums.mrr
        }
        flags = set(self.flags)
        for name, sums in counted.items():
            flags |= red_flags(sums, self._windows(sums))
            if explained_by_price(sums, name, earlier.get(name)):
                flags.add("price_rise")
        if len(counted) > 1:
            flags.add("multiple_currencies")
        return Measure(
            figures=tuple(figures(name, sums) for name, sums in counted.items()),
            orders=sum(sums.payments for sums in counted.values()),
            skipped=tuple(SkippedOrders(*item) for item in sorted(self.skipped.items())),
            flags=tuple(sorted(flags)),
        )

    def _windows(self, sums: AccountSums) -> list[int]:
        """List the revenue of the windows before that the account was there for."""
        ends = (self.start - back * WINDOW for back in range(EARLIER_WINDOWS))
        first = self.first_at or self.end
        return [earned for earned, end in zip(sums.before, ends, strict=True) if first < end]


def measure(
    charges: Iterable[PulledCharge],
    subscriptions: Iterable[PulledSubscription],
    end: datetime,
    earlier: Mapping[str, Earlier] | None = None,
) -> Measure:
    """Say what an account's payments and subscriptions come to at a moment."""
    tally = AccountTally(end)
    for charge in charges:
        tally.add_charge(charge)
    for subscription in subscriptions:
        tally.add_subscription(subscription)
    return tally.measure(earlier or {})


def reach(subscriptions: Sequence[PulledSubscription], now: datetime) -> timedelta:
    """Say how far back payments must be read to know who of these customers pays."""
    wanted = (each for each in subscriptions if recurring.idle(each, now) is None)
    spans = (recurring.interval_of(each) + recurring.PAYMENT_GRACE for each in wanted)
    return max(chain(spans, (LOOKBACK,)))


def refused(charge: PulledCharge) -> str | None:
    """Name the first reason why a payment does not count, or None."""
    checks = (
        ("test", not charge.live),
        ("failed", not charge.succeeded),
        ("uncaptured", charge.captured <= 0),
    )
    return next((reason for reason, holds in checks if holds), None)


def stands(charge: PulledCharge) -> bool:
    """Whether a payment that counts was neither given back whole nor is disputed."""
    return charge.dispute in UNDISPUTED and charge.refunded < charge.captured


def value(charge: PulledCharge) -> int:
    """Say what the seller keeps of a payment that counts; nothing while it is disputed."""
    if charge.dispute not in UNDISPUTED:
        return 0
    return max(0, charge.captured - charge.refunded - charge.transferred)


def figures(currency: str, sums: AccountSums) -> CurrencyFigures:
    """Round the sums of one currency, once."""
    revenue = rounded(Fraction(sums.revenue), currency)
    return CurrencyFigures(
        currency=currency,
        revenue30d=revenue,
        mrr=rounded(sums.mrr, currency),
        annualised=12 * revenue,
        orders=sums.payments,
        mrr_at_risk=rounded(sums.at_risk, currency),
        subscribers=len(sums.subscribers),
    )


def rounded(amount: Fraction, currency: str) -> int:
    """Round an amount that is not negative half up to ISO 4217's minor units."""
    return int((amount * ISO_UNITS.get(currency, Fraction(1)) + Fraction(1, 2)) // 1)


def red_flags(sums: AccountSums, windows: Sequence[int]) -> set[str]:
    """List what a reviewer should look at in who paid, and how much came back."""
    found = set[str]()
    paid = sums.customers.values()
    if len(paid) >= TOP_FROM_CUSTOMERS and max(paid) > sums.revenue * TOP_SHARE:
        found.add("top_customer")
    shared = (card for card in sums.cards.values() if len(card.customers) >= CARD_CUSTOMERS)
    if any(card.paid > sums.revenue * CARD_SHARE for card in shared):
        found.add("shared_card")
    if Decimal(sums.returned) > sums.captured * REFUND_RATE:
        found.add("refund_rate")
    if is_spike(sums.revenue, windows):
        found.add("revenue_spike")
    return found


def explained_by_price(sums: AccountSums, currency: str, earlier: Earlier | None) -> bool:
    """Whether old customers on new prices make more than 30 percent of a rise in two weeks.

    What they paid before is not known any more; it is taken for what everyone paid on average.
    """
    if earlier is None or not earlier.subscribers or not sums.repriced_subscribers:
        return False
    scale = ISO_UNITS.get(currency, Fraction(1))
    rise = sums.mrr * scale - earlier.mrr
    average = Fraction(earlier.mrr, earlier.subscribers)
    explained = sums.repriced * scale - len(sums.repriced_subscribers) * average
    return rise > 0 and explained > rise * PRICE_SHARE
