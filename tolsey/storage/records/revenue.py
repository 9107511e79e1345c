"""Orders as they were pulled from the commerce platform, and what a sync makes of them.

Only pulled orders are measured, never delivered webhooks: a merchant owns the app secret and could
forge a delivery for its own shop (product page "The commerce platform", section 2).
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class PulledLine:
    """One line of an order; the amount is for all units sold, those returned since included."""

    after_discounts_before_taxes: Decimal
    quantity: int
    current_quantity: int
    is_gift_card: bool = False
    selling_plan: str | None = None


@dataclass(frozen=True, slots=True)
class PulledTransaction:
    """One movement of money on an order, as the platform names its kind and status."""

    kind: str
    status: str
    test: bool
    manual_payment_gateway: bool
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PulledOrder:
    """One order; every amount is in `currency`, the shop's money at the time of the order."""

    order_id: str
    processed_at: datetime
    created_at: datetime | None
    currency: str
    test: bool
    cancelled_at: datetime | None
    source_name: str | None
    total: Decimal
    current_total: Decimal | None
    refunded: Decimal
    lines: tuple[PulledLine, ...]
    transactions: tuple[PulledTransaction, ...]


@dataclass(frozen=True, slots=True)
class CurrencyFigures:
    """What one currency earned in a window, in its minor units; currencies are never added."""

    currency: str
    revenue30d: int
    mrr: int
    annualised: int
    orders: int


@dataclass(frozen=True, slots=True)
class SkippedOrders:
    """How many orders of a window did not count, and why."""

    reason: str
    orders: int


@dataclass(frozen=True, slots=True)
class Measure:
    """What the orders of one window come to, with the red flags a reviewer should see."""

    figures: tuple[CurrencyFigures, ...] = ()
    orders: int = 0
    skipped: tuple[SkippedOrders, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RevenueSnapshot:
    """A good sync, kept for good: a row of revenue_snapshots, never written again.

    `verified` says that the shop had thirty days of history then. `figures` and `skipped` are
    JSON text: figures by currency in minor units, skipped orders by reason.
    """

    listing_id: str
    window_end: datetime
    window_start: datetime
    source: str
    shop_domain: str
    definition: str
    shop_currency: str
    verified: bool
    figures: str
    orders: int
    skipped: str
    flags: str
