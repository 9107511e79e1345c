"""Definition rv2 for a commerce source: what orders are worth, and what about them looks odd.

Rules 9 to 13 (rules/revenue#orders and what follows). A change of these rules is a new
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
    PulledOrder,
    PulledRefund,
    PulledTransaction,
    SkippedOrders,
    UnprovenOrders,
)

WINDOW: Final = timedelta(days=30)
IMPORT_GAP: Final = timedelta(hours=48)
"""An order made further from its processing time than this was imported, not sold here."""
CHECKOUTS: Final = frozenset({"web", "iphone", "android", "shopify_draft_order"})
"""Sources of orders that no API client can give to an order it writes."""
UNSETTLED: Final = frozenset(
    {
        "gift_card",
        "store_credit",
        "shopify_store_credit",
        "cash",
        "manual",
        "bogus",
        "other",
        "cash_on_delivery_(cod)",
        "bank_deposit",
        "money_order",
        "check",
    }
)
"""Gateways behind which no processor moves money when an order is placed."""
EXCHANGE: Final = "exchange"
GOING_BACK: Final = frozenset({"SUCCESS", "PENDING", "AWAITING_RESPONSE"})
SELLING_PLANS: Final = frozenset({"basic", "grow", "advanced", "plus", "retail", "starter", "lite"})

UNPROVEN_SHARE: Final = Decimal("0.20")
REFUND_RATE: Final = Decimal("0.20")
SPIKE: Final = 3
MOST_NAMED: Final = 20
"""How many pairs of gateway and source a sync names; the rest is told as one."""
REST: Final = ("others", "others")
LONGEST_NAME: Final = 80

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


@dataclass(slots=True, kw_only=True)
class OrderSums:
    """Running sums of one currency, in its major unit."""

    revenue: Decimal = ZERO
    recurring: Decimal = ZERO
    orders: int = 0
    taken: Decimal = ZERO
    """All payments, however they were made."""
    proven: Decimal = ZERO
    returned: Decimal = ZERO
    """What of the proven payments was refunded or is disputed."""
    refunds_of_earlier: Decimal = ZERO


@dataclass(slots=True, kw_only=True)
class OrderPayments:
    """What came in for an order and what goes back, each movement looked at once."""

    payments: list[PulledTransaction] = field(default_factory=list)
    taken: Decimal = ZERO
    proven: Decimal = ZERO
    """The payments that cannot have been written by hand."""
    given_back: Decimal = ZERO
    """What goes back through the gateways of the proven payments."""
    going_back: Decimal = ZERO
    """What goes back through every gateway."""


@dataclass(slots=True, kw_only=True)
class OrderTally:
    """Folds orders one by one; its size does not depend on their number."""

    start: datetime
    end: datetime
    sums: dict[str, OrderSums] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    unproven: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, order: PulledOrder) -> None:
        """Count an order, or note why it does not count."""
        with localcontext(PRECISE):
            is_inside = self.start <= order.processed_at < self.end
            paid = paid_of(order)
            reason = refused(order, paid, is_inside=is_inside)
            if reason in (None, "disputed", "manual_gateway", "unproven_payment"):
                self._note_money(order, paid)
            if reason is not None:
                self.skipped[reason] = self.skipped.get(reason, 0) + 1
                if reason == "unproven_payment":
                    self._note_unproven(order, paid)
                return
            revenue, recurring = worth(order, paid)
            sums = self.sums[order.currency]
            sums.revenue += revenue
            sums.recurring += recurring
            sums.orders += 1

    def add_earlier(self, order: PulledOrder) -> None:
        """Take off what went back in the window of an order from before it."""
        with localcontext(PRECISE):
            paid = paid_of(order)
            # A return that comes after its order has left the window is told apart (rules/revenue#orders); what
            # was never counted is not taken off either.
            counted = refused(order, paid) in (None, "cancelled", "disputed")
            if order.processed_at >= self.start or not counted:
                return
            fallen = sum(
                (
                    min(each.paid_back, each.goods + goodwill(each))
                    for each in order.refunds
                    if self.start <= each.at < self.end
                ),
                ZERO,
            )
            sums = self.sums.setdefault(order.currency, OrderSums())
            sums.refunds_of_earlier += (fallen * share_proven(order, paid)).quantize(GUARD)

    def _note_money(self, order: PulledOrder, paid: OrderPayments) -> None:
        """Remember how an order was paid, for the red flags."""
        sums = self.sums.setdefault(order.currency, OrderSums())
        sums.taken += paid.taken
        sums.proven += paid.proven
        # What nobody proved cannot have been given back: an order that was paid by hand and
        # refunded says nothing about the refunds of the others.
        sums.returned += paid.proven if is_disputed(order) else min(paid.given_back, paid.proven)

    def _note_unproven(self, order: PulledOrder, paid: OrderPayments) -> None:
        """Remember the gateways and the source of an order that does not count."""
        source = (order.source_name or "unknown")[:LONGEST_NAME]
        for gateway in {t.gateway or "unknown" for t in paid.payments}:
            pair = (gateway[:LONGEST_NAME], source)
            is_named = pair in self.unproven or len(self.unproven) < MOST_NAMED
            named = pair if is_named else REST
            self.unproven[named] = self.unproven.get(named, 0) + 1

    def measure(self) -> Measure:
        """Say what the orders so far come to; currencies in alphabetical order."""
        counted = {
            name: sums
            for name, sums in sorted(self.sums.items())
            if sums.orders or sums.refunds_of_earlier
        }
        return Measure(
            figures=tuple(figures(name, sums) for name, sums in counted.items()),
            orders=sum(sums.orders for sums in counted.values()),
            skipped=tuple(SkippedOrders(*item) for item in sorted(self.skipped.items())),
            flags=money_flags(self.sums.values(), currencies=len(counted)),
            unproven=tuple(
                UnprovenOrders(*pair, orders) for pair, orders in sorted(self.unproven.items())
            ),
        )


def measure(
    orders: Iterable[PulledOrder],
    start: datetime,
    end: datetime,
    earlier: Iterable[PulledOrder] = (),
) -> Measure:
    """Say what the orders of [start, end) come to, less what went back of earlier ones."""
    tally = OrderTally(start=start, end=end)
    for order in orders:
        tally.add(order)
    for order in earlier:
        tally.add_earlier(order)
    return tally.measure()


def figures(currency: str, sums: OrderSums) -> CurrencyFigures:
    """Round the sums of one currency, once."""
    kept = max(ZERO, sums.revenue - sums.refunds_of_earlier)
    revenue = minor_units(kept, currency)
    return CurrencyFigures(
        currency=currency,
        revenue30d=revenue,
        mrr=minor_units(min(sums.recurring, kept), currency),
        annualised=12 * revenue,
        orders=sums.orders,
        refunds_of_earlier_orders30d=minor_units(sums.refunds_of_earlier, currency),
    )


def paid_of(order: PulledOrder) -> OrderPayments:
    """Add up an order's movements of money."""
    paid = OrderPayments()
    gateways = set[str | None]()
    back = []
    for each in order.transactions:
        if is_payment(each):
            paid.payments.append(each)
            paid.taken += each.amount
            if is_proven(order, each):
                paid.proven += each.amount
                gateways.add(each.gateway)
        elif each.kind.upper() == "REFUND" and each.status.upper() in GOING_BACK:
            back.append(each)
    for each in back:
        paid.going_back += each.amount
        if each.gateway in gateways:
            paid.given_back += each.amount
    return paid


def refused(order: PulledOrder, paid: OrderPayments, *, is_inside: bool = True) -> str | None:
    """Name the first reason why an order does not count, or None (rules/revenue#orders)."""
    created = order.created_at
    checks = (
        ("test", order.test),
        ("cancelled", order.cancelled_at is not None),
        ("outside_window", not is_inside),
        ("imported", created is not None and abs(created - order.processed_at) > IMPORT_GAP),
        ("unpaid", not paid.payments),
        ("disputed", is_disputed(order)),
        ("manual_gateway", all(t.manual_payment_gateway for t in paid.payments)),
        ("unproven_payment", paid.proven <= 0),
    )
    for reason, holds in checks:
        if holds:
            return reason
    return None


def proves_age(order: PulledOrder) -> bool:
    """Whether an old order says that the shop sold something then (rules/revenue#history).

    One that was given back whole says as little as one that was cancelled.
    """
    with localcontext(PRECISE):
        paid = paid_of(order)
        return refused(order, paid) is None and worth(order, paid)[0] > 0


def depends_on_refunds(order: PulledOrder) -> bool:
    """Whether what refunds were for can change what an order is worth.

    They only lower A (rules/revenue#orders): not where the order does not count, or B or C leave nothing of it.
    """
    with localcontext(PRECISE):
        paid = paid_of(order)
        is_kept = min(paid.proven - paid.given_back, by_totals(order)) > 0
        return is_kept and refused(order, paid) is None


def is_disputed(order: PulledOrder) -> bool:
    """Whether a buyer's bank takes the money back, or may yet."""
    return any(status.upper() != "WON" for status in order.disputes)


def is_payment(transaction: PulledTransaction) -> bool:
    """Whether money was taken, by whatever means."""
    return (
        transaction.kind.upper() in {"SALE", "CAPTURE"}
        and transaction.status.upper() == "SUCCESS"
        and not transaction.test
        and transaction.amount > 0
    )


def is_proven(order: PulledOrder, payment: PulledTransaction) -> bool:
    """Whether a payment cannot have been written by hand: P1 or P2 (rules/revenue#orders)."""
    # P1: only the platform's own processor fills in fees; an app that writes orders cannot.
    if payment.has_fees:
        return True
    # P2: a buyer went through the checkout, and an outside processor took the money there.
    return (
        order.has_checkout
        and order.source_name in CHECKOUTS
        and not payment.manual_payment_gateway
        and is_processor(payment.gateway)
    )


def is_processor(gateway: str | None) -> bool:
    """Whether a gateway's name is that of a processor, as far as a name can say."""
    if not gateway:
        return False
    name = gateway.lower().replace(" ", "_").replace("-", "_")
    return name not in UNSETTLED and not name.startswith(EXCHANGE)


def worth(order: PulledOrder, paid: OrderPayments) -> tuple[Decimal, Decimal]:
    """Say what an order is worth, and how much of that is on subscription lines.

    It is the least of what its lines say (A), what was really kept of the money (B), and what its
    current totals say (C; rules/revenue#orders).
    """
    goods = on_plans = ZERO
    for each in order.lines:
        if each.is_gift_card:
            continue
        goods += each.after_discounts_before_taxes
        if each.selling_plan:
            on_plans += each.after_discounts_before_taxes
    # A tip is a line, and duties may be inside the prices: neither is the seller's.
    sold = goods - order.tip - (order.duties if order.duties_included else ZERO)
    by_lines = sold * share_proven(order, paid) - sum(map(goodwill, order.refunds), ZERO)
    by_money = paid.proven - paid.given_back
    revenue = max(ZERO, min(by_lines, by_money, by_totals(order)))
    share = min(ONE, on_plans / goods) if goods > 0 and on_plans > 0 else ZERO
    return revenue.quantize(GUARD), (revenue * share).quantize(GUARD)


def by_totals(order: PulledOrder) -> Decimal:
    """Say what is left of the order's total without everything that is not goods."""
    gift_cards = sum((e.after_discounts_before_taxes for e in order.lines if e.is_gift_card), ZERO)
    others = order.tax + order.shipping + order.tip + order.duties + order.additional_fees
    return order.current_total - others - gift_cards


def share_proven(order: PulledOrder, paid: OrderPayments) -> Decimal:
    """Say how much of what the order asked for is proven, at most all of it."""
    asked = min(order.total, order.current_total + paid.going_back)
    if asked <= 0:
        return ZERO
    return paid.proven / asked if paid.proven < asked else ONE


def goodwill(refund: PulledRefund) -> Decimal:
    """Say what was given back beyond what was returned; a fee that was kept is no revenue."""
    return max(ZERO, refund.paid_back - refund.returned)


def money_flags(sums: Iterable[OrderSums], *, currencies: int) -> tuple[str, ...]:
    """List what a reviewer should look at in how the orders were paid."""
    flags = set[str]()
    for each in sums:
        if each.taken - each.proven > each.taken * UNPROVEN_SHARE:
            flags.add("unproven_share")
        if each.returned > each.proven * REFUND_RATE:
            flags.add("refund_rate")
    if currencies > 1:
        flags.add("multiple_currencies")
    return tuple(sorted(flags))


def is_development(facts: ShopFacts) -> bool:
    """Whether a shop is not known to be on a plan that sells (rules/revenue#checks).

    A plan only refuses and proves nothing: staging stores answer Plus.
    """
    return facts.partner_development or facts.plan.strip().lower() not in SELLING_PLANS


def is_spike(revenue: int, earlier: Iterable[int]) -> bool:
    """Whether revenue is more than three times the median of the windows before it."""
    windows = list(earlier)
    return bool(windows) and revenue > SPIKE * median(windows)
