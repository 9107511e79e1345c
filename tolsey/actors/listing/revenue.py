"""Definition rv1 for a commerce source: what orders are worth, and what about them looks odd.

Rules 9 to 13 of the product page "Revenue verification". A change of these rules is a new
version with a new name; snapshots made under the old one stay as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from statistics import median
from typing import Final

from tolsey.actors.ports import ShopFacts
from tolsey.storage.records.money.currencies import EXPONENTS
from tolsey.storage.records.selling.revenue import (
    CurrencyFigures,
    Measure,
    PulledLine,
    PulledOrder,
    PulledTransaction,
    SkippedOrders,
)

DEFINITION: Final = "rv1"
WINDOW: Final = timedelta(days=30)
IMPORT_GAP: Final = timedelta(hours=48)
"""An order made further from its processing time than this was imported, not sold here."""
DRAFT: Final = "shopify_draft_order"

MANUAL_SHARE: Final = Decimal("0.20")
REFUND_RATE: Final = Decimal("0.20")
SPIKE: Final = 3

PRECISE: Final = Context(prec=60, rounding=ROUND_HALF_EVEN)
GUARD: Final = Decimal(1).scaleb(-24)
"""Every order is worth a multiple of this, so that sums are exact in whatever order they come."""
SNAP: Final = Decimal(1).scaleb(-12)
"""Thirds leave sums a hair off the half; they are brought back before the one rounding."""

ZERO: Final = Decimal(0)
ONE: Final = Decimal(1)


def window_of(at: datetime) -> tuple[datetime, datetime]:
    """Thirty days that end at `at`: the start belongs to it, the end does not."""
    return at - WINDOW, at


def minor_units(amount: Decimal, currency: str) -> int:
    """Round an amount half up to whole minor units of its currency."""
    with localcontext(PRECISE):
        scaled = amount.quantize(SNAP).scaleb(EXPONENTS.get(currency, 2))
        return int(scaled.quantize(ONE, rounding=ROUND_HALF_UP))


@dataclass(slots=True)
class Sums:
    """Running sums of one currency, in its major unit."""

    revenue: Decimal = ZERO
    recurring: Decimal = ZERO
    orders: int = 0
    taken: Decimal = ZERO
    """All money taken, however it was paid."""
    manual: Decimal = ZERO
    """The part of it that no processor settled, or that came from draft orders."""
    settled: Decimal = ZERO
    refunded: Decimal = ZERO


@dataclass(slots=True)
class Tally:
    """Folds orders one by one; its size depends on the number of currencies alone."""

    start: datetime
    end: datetime
    sums: dict[str, Sums] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, order: PulledOrder) -> None:
        """Count an order, or note why it does not count."""
        with localcontext(PRECISE):
            reason = refused(order, self.start, self.end)
            if reason in (None, "manual_gateway"):
                self.note_money(order)
            if reason is not None:
                self.skipped[reason] = self.skipped.get(reason, 0) + 1
                return
            revenue, recurring = worth(order)
            sums = self.sums.setdefault(order.currency, Sums())
            sums.revenue += revenue
            sums.recurring += recurring
            sums.orders += 1

    def note_money(self, order: PulledOrder) -> None:
        """Remember how an order was paid, for the red flags."""
        sums = self.sums.setdefault(order.currency, Sums())
        taken = sum((t.amount for t in order.transactions if is_payment(t)), ZERO)
        settled = collected(order)
        sums.taken += taken
        sums.manual += taken if order.source_name == DRAFT else taken - settled
        sums.settled += settled
        sums.refunded += min(order.refunded, settled)

    def measure(self) -> Measure:
        """Say what the orders so far come to; currencies in alphabetical order."""
        counted = {name: sums for name, sums in sorted(self.sums.items()) if sums.orders}
        return Measure(
            figures=tuple(figures(name, sums) for name, sums in counted.items()),
            orders=sum(sums.orders for sums in counted.values()),
            skipped=tuple(SkippedOrders(*item) for item in sorted(self.skipped.items())),
            flags=money_flags(self.sums.values(), currencies=len(counted)),
        )


def measure(orders: Iterable[PulledOrder], start: datetime, end: datetime) -> Measure:
    """Say what the orders of [start, end) come to."""
    tally = Tally(start, end)
    for order in orders:
        tally.add(order)
    return tally.measure()


def figures(currency: str, sums: Sums) -> CurrencyFigures:
    """Round the sums of one currency, once."""
    revenue = minor_units(sums.revenue, currency)
    recurring = minor_units(sums.recurring, currency)
    return CurrencyFigures(currency, revenue, recurring, 12 * revenue, sums.orders)


def refused(order: PulledOrder, start: datetime, end: datetime) -> str | None:
    """Name the first reason why an order does not count, or None."""
    paid = [t for t in order.transactions if is_payment(t)]
    created = order.created_at
    checks = (
        ("test", order.test),
        ("cancelled", order.cancelled_at is not None),
        ("outside_window", not start <= order.processed_at < end),
        ("imported", created is not None and abs(created - order.processed_at) > IMPORT_GAP),
        ("unpaid", not paid),
        ("manual_gateway", all(t.manual_payment_gateway for t in paid)),
    )
    return next((reason for reason, holds in checks if holds), None)


def is_payment(transaction: PulledTransaction) -> bool:
    """Whether money was taken, by whatever means."""
    return (
        transaction.kind.upper() in {"SALE", "CAPTURE"}
        and transaction.status.upper() == "SUCCESS"
        and not transaction.test
        and transaction.amount > 0
    )


def collected(order: PulledOrder) -> Decimal:
    """Add up what a processor took for the order."""
    settled = (t.amount for t in order.transactions if is_payment(t) and not_manual(t))
    return sum(settled, ZERO)


def not_manual(transaction: PulledTransaction) -> bool:
    """Whether a processor stands behind the payment; cash and "mark as paid" have none."""
    return not transaction.manual_payment_gateway


def worth(order: PulledOrder) -> tuple[Decimal, Decimal]:
    """Say what an order is worth, and how much of that is on subscription lines."""
    goods = sum((kept(line) for line in order.lines), ZERO)
    on_plans = sum((kept(line) for line in order.lines if line.selling_plan), ZERO)
    if goods <= 0:
        return ZERO, ZERO
    revenue = max(ZERO, goods * share_collected(order) - goodwill(order))
    recurring = revenue * on_plans / goods
    return revenue.quantize(GUARD), recurring.quantize(GUARD)


def kept(line: PulledLine) -> Decimal:
    """Say what the units the buyer kept cost, without tax; a gift card is not a sale yet."""
    if line.is_gift_card or line.quantity <= 0:
        return ZERO
    units = min(max(line.current_quantity, 0), line.quantity)
    return max(ZERO, line.after_discounts_before_taxes) * units / line.quantity


def share_collected(order: PulledOrder) -> Decimal:
    """Say how much of the order's total a processor really took, at most all of it."""
    return min(ONE, collected(order) / order.total) if order.total > 0 else ONE


def goodwill(order: PulledOrder) -> Decimal:
    """Say what was refunded beyond returned goods; unknown when the total now is unknown."""
    if order.current_total is None:
        return ZERO
    returned = max(ZERO, order.total - order.current_total)
    return max(ZERO, order.refunded - returned)


def money_flags(sums: Iterable[Sums], *, currencies: int) -> tuple[str, ...]:
    """List what a reviewer should look at in how the orders were paid."""
    flags = set[str]()
    for each in sums:
        if each.manual > each.taken * MANUAL_SHARE:
            flags.add("manual_share")
        if each.refunded > each.settled * REFUND_RATE:
            flags.add("refund_rate")
    if currencies > 1:
        flags.add("multiple_currencies")
    return tuple(sorted(flags))


def is_development(facts: ShopFacts) -> bool:
    """Whether a shop is a test or trial one, whose orders prove nothing."""
    plan = facts.plan.strip().lower()
    return (
        facts.partner_development or "development" in plan or plan in {"trial", "developer preview"}
    )


def is_spike(revenue: int, earlier: Iterable[int]) -> bool:
    """Whether revenue is more than three times the median of the windows before it."""
    windows = list(earlier)
    return bool(windows) and revenue > SPIKE * median(windows)
