"""Order histories: made up from a seed, or read from a file of purchases."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tolsey.sandbox.commerce.shop.orders import (
    Customer,
    Line,
    Order,
    Refund,
    RefundedLine,
    SellingPlan,
    Transaction,
    fee_of,
    new_ids,
)

GOODS = (
    ("Linen shirt", 4900),
    ("Canvas bag", 3200),
    ("Ceramic mug", 1800),
    ("Wool blanket", 12900),
    ("Desk lamp", 7450),
    ("Notebook", 1250),
    ("Coffee, 1 kg", 2490),
    ("Candle", 1999),
)
VISITS = (
    ("/?utm_source=newsletter&utm_medium=email&utm_campaign=spring", None),
    ("/products/linen-shirt?gclid=made-up", "https://www.google.com/"),
    ("/collections/all", "https://www.instagram.com/shop"),
    ("/", None),
    (None, None),
)
"""How buyers came, by turns: the first page of their visit, and who led there."""
_TAX_PERCENT = 8


def make_history(
    seed: int = 1,
    days: int = 30,
    orders: int = 1000,
    currency: str = "USD",
    ending: datetime | None = None,
) -> list[Order]:
    """Make up a realistic order history, oldest first, that ends just before `ending`.

    The same arguments give the same history. Each order's first tag names its kind: `plain`,
    `taxed`, `tax_included`, `discounted`, `returned`, `goodwill`, `cancelled`, `test`, `manual`,
    `gift_card`, `subscription`, `pending`, `captured`.
    """
    writer = _Writer(random.Random(seed), currency)  # noqa: S311 - repeatable, no secret
    last = ending or datetime.now(UTC)
    start, seconds = last - timedelta(days=days), days * 86_400
    moments = sorted(writer.random.randrange(seconds) for _ in range(orders))
    kinds = writer.random.choices(tuple(_KINDS), [share for share, _ in _KINDS.values()], k=orders)
    begun = start.replace(microsecond=0)
    history = []
    for number, (moment, kind) in enumerate(zip(moments, kinds, strict=True), 1001):
        order = writer.order(number, begun + timedelta(seconds=moment), kind)
        _KINDS[kind][1](writer, order)
        if order.customer is not None:
            order.customer.spent += order.received - order.refunded
        history.append(order)
    return history


@dataclass(slots=True)
class _Writer:
    """Draws orders from one generator, so that a seed fixes everything."""

    random: random.Random
    currency: str
    ids: Iterator[int] = field(default_factory=lambda: new_ids(5_820_982_911_946_154_000))
    customers: list[Customer] = field(default_factory=list)

    def order(self, number: int, at: datetime, kind: str) -> Order:
        """Draw an order with one to three lines, not paid yet."""
        draw = self.random
        landing_site, referring_site = VISITS[number % len(VISITS)]
        goods = draw.choices(GOODS, k=draw.choice((1, 1, 1, 2, 2, 3)))
        lines = [
            Line(next(self.ids), title, price, draw.choice((1, 1, 1, 2, 3)))
            for title, price in goods
        ]
        return Order(
            id=next(self.ids),
            number=number,
            currency=self.currency,
            created_at=at,
            processed_at=at,
            updated_at=at,
            lines=lines,
            shipping=draw.choice((0, 0, 500, 895)),
            checkout_token=f"{number:032x}",
            customer=self.customer(at),
            tags=(kind,),
            landing_site=landing_site,
            referring_site=referring_site,
        )

    def customer(self, at: datetime) -> Customer:
        """Draw a buyer; two of three orders come from one who bought before."""
        if self.customers and self.random.random() < 2 / 3:
            customer = self.random.choice(self.customers)
        else:
            number = next(self.ids)
            customer = Customer(
                number,
                f"buyer-{number}@example.com",
                "Sandy",
                "Box",
                at,
                at,
                currency=self.currency,
            )
            self.customers.append(customer)
        customer.orders += 1
        customer.updated_at = at
        return customer

    def pay(self, order: Order, status: str = "SUCCESS", *, manual: bool = False) -> Transaction:
        """Take the order's total at once."""
        gateway = "manual" if manual else "shopify_payments"
        return self.move(order, "SALE", order.total, status=status, gateway=gateway, manual=manual)

    def move(
        self,
        order: Order,
        kind: str,
        amount: int,
        *,
        status: str = "SUCCESS",
        gateway: str = "shopify_payments",
        after: timedelta = timedelta(),
        manual: bool = False,
        test: bool = False,
    ) -> Transaction:
        """Move money for the order; the platform's own processor keeps a fee of what comes in."""
        is_charged = gateway == "shopify_payments" and kind in ("SALE", "CAPTURE") and not test
        moved = Transaction(
            id=next(self.ids),
            kind=kind,
            status=status,
            amount=amount,
            gateway=gateway,
            created_at=order.created_at + after,
            test=test,
            manual=manual,
            currency=order.currency,
            fee=fee_of(amount) if is_charged and status == "SUCCESS" else 0,
        )
        order.transactions.append(moved)
        return moved

    def refund(self, order: Order, amount: int, lines: list[RefundedLine]) -> Refund:
        """Pay some of the money back a day later."""
        later = timedelta(days=1)
        moved = self.move(order, "REFUND", amount, after=later)
        refund = Refund(
            next(self.ids), moved.created_at, amount, lines=lines, currency=order.currency
        )
        refund.transactions.append(moved)
        order.refunds.append(refund)
        order.updated_at = moved.created_at
        return refund


def _plain(writer: _Writer, order: Order) -> None:
    writer.pay(order)


def _taxed(writer: _Writer, order: Order) -> None:
    for line in order.lines:
        line.tax = line.discounted * _TAX_PERCENT // 100
    writer.pay(order)


def _tax_included(writer: _Writer, order: Order) -> None:
    order.taxes_included = True
    for line in order.lines:
        line.tax = line.discounted * _TAX_PERCENT // (100 + _TAX_PERCENT)
    writer.pay(order)


def _discounted(writer: _Writer, order: Order) -> None:
    for line in order.lines:
        line.discount = line.unit_price * line.quantity * writer.random.choice((5, 10, 25)) // 100
    writer.pay(order)


def _returned(writer: _Writer, order: Order) -> None:
    line = order.lines[0]
    line.quantity = max(2, line.quantity)
    writer.pay(order)
    value = line.discounted // line.quantity
    line.returned = 1
    back = RefundedLine(next(writer.ids), line, 1, value, 0, "RETURN")
    writer.refund(order, value, [back])


def _goodwill(writer: _Writer, order: Order) -> None:
    writer.pay(order)
    writer.refund(order, order.total // 10, [])


def _cancelled(writer: _Writer, order: Order) -> None:
    writer.pay(order)
    lines = []
    for line in order.lines:
        lines.append(
            RefundedLine(next(writer.ids), line, line.quantity, line.discounted, 0, "CANCEL")
        )
        line.returned = line.quantity
    refund = writer.refund(order, order.total, lines)
    order.cancelled_at, order.cancel_reason = refund.created_at, "customer"


def _test(writer: _Writer, order: Order) -> None:
    order.test = True
    writer.move(order, "SALE", order.total, gateway="bogus", test=True)


def _manual(writer: _Writer, order: Order) -> None:
    order.source_name = writer.random.choice(("shopify_draft_order", "web"))
    writer.pay(order, manual=True)


def _gift_card(writer: _Writer, order: Order) -> None:
    order.lines.append(Line(next(writer.ids), "Gift card", 5000, gift_card=True))
    writer.pay(order)


def _subscription(writer: _Writer, order: Order) -> None:
    order.lines[0].selling_plan = SellingPlan(690_933_842, "Every month")
    order.source_name = "subscription_contract"
    writer.pay(order)


def _pending(writer: _Writer, order: Order) -> None:
    writer.pay(order, "PENDING")


def _captured(writer: _Writer, order: Order) -> None:
    writer.move(order, "AUTHORIZATION", order.total)
    writer.move(order, "CAPTURE", order.total, after=timedelta(hours=1))
    order.updated_at = order.created_at + timedelta(hours=1)


_KINDS: dict[str, tuple[int, Callable[[_Writer, Order], None]]] = {
    "plain": (38, _plain),
    "taxed": (16, _taxed),
    "tax_included": (4, _tax_included),
    "discounted": (12, _discounted),
    "returned": (6, _returned),
    "goodwill": (2, _goodwill),
    "cancelled": (3, _cancelled),
    "test": (2, _test),
    "manual": (3, _manual),
    "gift_card": (3, _gift_card),
    "subscription": (6, _subscription),
    "pending": (1, _pending),
    "captured": (4, _captured),
}


def load_purchases(path: Path, ending: datetime, currency: str = "USD") -> list[Order]:
    """Read purchases in the CDNOW text form, moved so that the last day is the one of `ending`.

    Every line holds ids, a day (yyyymmdd), a number of discs and an amount with two decimals; the
    customer is the first column. Orders come at noon, oldest first, as one line paid by card.
    """
    rows = []
    for text in path.read_text(encoding="ascii").splitlines():
        words = text.split()
        if not words:
            continue
        day = datetime.strptime(words[-3], "%Y%m%d").replace(hour=12, tzinfo=UTC)
        whole, _, cents = words[-1].partition(".")
        rows.append((day, words[0], int(words[-2]), int(whole or 0) * 100 + int(f"{cents:0<2}")))
    rows.sort(key=lambda row: row[0])
    if not rows:
        return []
    last = ending.astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    shift = last - rows[-1][0]
    ids, buyers = new_ids(5_820_982_911_946_154_000), dict[str, Customer]()
    history = []
    for number, (day, name, discs, paid) in enumerate(rows, 1001):
        at = day + shift
        buyer = buyers.get(name)
        if buyer is None:
            email = f"reader-{name}@example.com"
            buyer = Customer(next(ids), email, "Reader", name, at, at, currency=currency)
            buyers[name] = buyer
        buyer.orders, buyer.spent, buyer.updated_at = buyer.orders + 1, buyer.spent + paid, at
        line = Line(next(ids), f"{discs} discs", paid)
        sale = Transaction(
            next(ids),
            "SALE",
            "SUCCESS",
            paid,
            "shopify_payments",
            at,
            currency=currency,
            fee=fee_of(paid),
        )
        history.append(
            Order(next(ids), number, currency, at, at, at, [line], [sale], customer=buyer)
        )
    return history
