"""Orders as the platform keeps them, and the sums that follow from their lines and payments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from tolsey.sandbox.commerce.shop.money import Money

# The platform's ids are longer than what a double holds exactly (2**53).
FIRST_ID = 7_205_759_403_792_794_000


def new_ids(start: int = FIRST_ID) -> Iterator[int]:
    """Count ids upwards, all of them beyond 2**53."""
    return count(start)


@dataclass(slots=True)
class SellingPlan:
    """The subscription a line was bought under."""

    id: int
    name: str


@dataclass(slots=True)
class Line:
    """One line of an order; amounts in minor units, for the quantity sold."""

    id: int
    title: str
    unit_price: int
    quantity: int = 1
    discount: int = 0
    tax: int = 0
    returned: int = 0
    sku: str = ""
    gift_card: bool = False
    tip: bool = False
    """Whether it is what a buyer gave on top: the platform lists a tip among the lines."""
    selling_plan: SellingPlan | None = None
    product_id: int | None = None
    variant_id: int | None = None

    @property
    def current_quantity(self) -> int:
        """How many of the units were not returned or removed."""
        return self.quantity - self.returned

    @property
    def discounted(self) -> int:
        """What the sold quantity cost after all discounts."""
        return self.unit_price * self.quantity - self.discount


@dataclass(slots=True)
class Transaction:
    """One movement of money for an order."""

    id: int
    kind: str
    status: str
    amount: int
    gateway: str
    created_at: datetime
    test: bool = False
    manual: bool = False
    parent_id: int | None = None
    currency: str = "USD"
    fee: int = 0
    """What the platform's own processor kept of it; no one else's payment has a fee."""


@dataclass(slots=True)
class Dispute:
    """A chargeback or an inquiry about a payment of an order."""

    id: int
    status: str = "NEEDS_RESPONSE"
    initiated_as: str = "CHARGEBACK"


@dataclass(slots=True)
class RefundedLine:
    """Some units of a line that came back; amounts in minor units."""

    id: int
    line: Line
    quantity: int
    subtotal: int
    tax: int
    restock: str = "NO_RESTOCK"


@dataclass(slots=True)
class Refund:
    """Money (and perhaps goods) given back."""

    id: int
    created_at: datetime
    amount: int
    note: str | None = None
    lines: list[RefundedLine] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    currency: str = "USD"
    shipping: int = 0
    shipping_tax: int = 0
    duties: int = 0


@dataclass(slots=True)
class Fulfilment:
    """A parcel: units by line, and how it is tracked; `told` counts the mails to the buyer."""

    id: int
    created_at: datetime
    lines: Mapping[int, int]
    company: str | None = None
    number: str | None = None
    url: str | None = None
    told: int = 0


@dataclass(slots=True)
class Customer:
    """A buyer."""

    id: int
    email: str | None
    first_name: str
    last_name: str
    created_at: datetime
    updated_at: datetime
    orders: int = 0
    spent: int = 0
    currency: str = "USD"
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class Order:
    """An order; every sum is derived, so it cannot disagree with the lines and payments."""

    id: int
    number: int
    currency: str
    created_at: datetime
    processed_at: datetime
    updated_at: datetime
    lines: list[Line]
    transactions: list[Transaction] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)
    shipping: int = 0
    shipping_tax: int = 0
    duties: int = 0
    duties_included: bool = False
    additional_fees: int = 0
    taxes_included: bool = False
    checkout_token: str | None = None
    disputes: list[Dispute] = field(default_factory=list)
    test: bool = False
    cancelled_at: datetime | None = None
    cancel_reason: str | None = None
    closed_at: datetime | None = None
    source_name: str = "web"
    fulfilments: list[Fulfilment] = field(default_factory=list)
    customer: Customer | None = None
    tags: tuple[str, ...] = ()
    note: str | None = None
    landing_site: str | None = None
    """The first page of the visit that ended in the order, and who led there."""
    referring_site: str | None = None

    @property
    def name(self) -> str:
        """The number as buyers see it."""
        return f"#{self.number}"

    @property
    def fulfilled(self) -> int:
        """Units sent."""
        return sum(sum(sent.lines.values()) for sent in self.fulfilments)

    def unsent(self, line: Line) -> int:
        """Units of a line that are still to be sent."""
        sent = sum(one.lines.get(line.id, 0) for one in self.fulfilments)
        return max(0, line.current_quantity - sent)

    @property
    def quantity(self) -> int:
        """Units sold."""
        return sum(line.quantity for line in self.lines)

    @property
    def goods(self) -> int:
        """List price of everything sold."""
        return sum(line.unit_price * line.quantity for line in self.lines)

    @property
    def discounts(self) -> int:
        """All discounts together."""
        return sum(line.discount for line in self.lines)

    @property
    def subtotal(self) -> int:
        """Goods after discounts."""
        return self.goods - self.discounts

    @property
    def tax(self) -> int:
        """Tax on goods and shipping."""
        return sum(line.tax for line in self.lines) + self.shipping_tax

    @property
    def total(self) -> int:
        """What the buyer was asked for at the sale."""
        added = 0 if self.taxes_included else self.tax
        duties = 0 if self.duties_included else self.duties
        return self.subtotal + self.shipping + added + duties + self.additional_fees

    @property
    def tip(self) -> int:
        """What the buyer gave on top; it is among the lines."""
        return sum(line.discounted for line in self.lines if line.tip)

    @property
    def current_shipping(self) -> int:
        """Shipping that was not given back."""
        return self.shipping - sum(refund.shipping for refund in self.refunds)

    @property
    def current_duties(self) -> int:
        """Duties that were not given back."""
        return self.duties - sum(refund.duties for refund in self.refunds)

    @property
    def current_tax(self) -> int:
        """Tax on what was not returned."""
        return self.tax - sum(
            refund.shipping_tax + sum(line.tax for line in refund.lines) for refund in self.refunds
        )

    @property
    def returned_value(self) -> int:
        """Value, with tax where it was added, of the units, shipping and duties that came back."""
        extra = 0 if self.taxes_included else 1
        lines = sum(
            line.subtotal + extra * line.tax for refund in self.refunds for line in refund.lines
        )
        duties = 0 if self.duties_included else self.duties - self.current_duties
        shipping = sum(each.shipping + extra * each.shipping_tax for each in self.refunds)
        return lines + shipping + duties

    @property
    def current_total(self) -> int:
        """What the order is worth after returns."""
        return self.total - self.returned_value

    @property
    def received(self) -> int:
        """Money that came in."""
        return sum(
            t.amount
            for t in self.transactions
            if t.status == "SUCCESS" and t.kind in {"SALE", "CAPTURE"}
        )

    @property
    def refunded(self) -> int:
        """Money that went back."""
        return sum(
            t.amount for t in self.transactions if t.status == "SUCCESS" and t.kind == "REFUND"
        )

    @property
    def outstanding(self) -> int:
        """What the buyer still owes."""
        if self.cancelled_at is not None:
            return 0
        return max(0, self.current_total - (self.received - self.refunded))

    @property
    def gateways(self) -> list[str]:
        """Names of the gateways that were used, each once."""
        return list(dict.fromkeys(t.gateway for t in self.transactions))

    @property
    def financial_status(self) -> str:
        """The status the admin displays, in the words of `OrderDisplayFinancialStatus`."""
        received, refunded = self.received, self.refunded
        if received == 0:
            if any(t.kind == "VOID" and t.status == "SUCCESS" for t in self.transactions):
                return "VOIDED"
            authorized = any(
                t.kind == "AUTHORIZATION" and t.status == "SUCCESS" for t in self.transactions
            )
            if self.total == 0:
                return "PAID"
            return "AUTHORIZED" if authorized else "PENDING"
        if refunded >= received:
            return "REFUNDED"
        if refunded > 0:
            return "PARTIALLY_REFUNDED"
        return "PAID" if received >= self.total else "PARTIALLY_PAID"

    @property
    def fulfillment_status(self) -> str:
        """The status the admin displays, in the words of `OrderDisplayFulfillmentStatus`."""
        if self.fulfilled == 0:
            return "UNFULFILLED"
        return "FULFILLED" if self.fulfilled >= self.quantity else "PARTIALLY_FULFILLED"

    def money(self, minor: int) -> Money:
        """Pair an amount with the order's currency."""
        return Money(minor, self.currency)


def fee_of(amount: int) -> int:
    """Say what the platform's own processor keeps of a payment: 2.9 % and thirty cents."""
    return amount * 29 // 1000 + 30


def before_taxes(order: Order, line: Line, *, returns_excluded: bool) -> int:
    """Price of a line after all discounts and before taxes.

    The published schema says of `priceAfterAllDiscountsBeforeTaxesSet` that it excludes refunded
    and removed quantities; without `returns_excluded` it is the price of what was sold.
    """
    whole = line.discounted - (line.tax if order.taxes_included else 0)
    if not returns_excluded or line.returned == 0 or line.quantity == 0:
        return whole
    return whole * line.current_quantity // line.quantity
