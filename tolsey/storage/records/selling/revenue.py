"""What was pulled from the commerce platform or the payment processor, and what a sync makes of it.

Only what was pulled is measured, never delivered webhooks: a merchant owns the app secret and could
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
class Tier:
    """One step of a price by quantity; `up_to` is None for the last, amounts are minor units."""

    up_to: int | None
    unit_amount: Decimal
    flat_amount: Decimal


@dataclass(frozen=True, slots=True)
class PulledPrice:
    """A recurring price; `tiers_mode` is None when every unit costs the same."""

    interval: str
    interval_count: int
    metered: bool
    unit_amount: Decimal | None
    tiers_mode: str | None = None
    tiers: tuple[Tier, ...] | None = None
    """None when they could not be read."""
    divide_by: int | None = None
    round_up: bool = False
    tax_inclusive: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PulledDiscount:
    """A discount of an item or a subscription; without percent and amount its terms are unknown."""

    duration: str
    start: datetime | None
    end: datetime | None
    percent_off: Decimal | None = None
    amount_off: Decimal | None = None


@dataclass(frozen=True, slots=True)
class PulledItem:
    """One item of a subscription; `inclusive_tax_percent` is what its known tax rates say."""

    price: PulledPrice
    quantity: int
    discounts: tuple[PulledDiscount, ...] = ()
    inclusive_tax_percent: Decimal | None = None


@dataclass(frozen=True, slots=True)
class PulledSubscription:
    """One subscription of a seller's customer, without anything that says who that is."""

    subscription_id: str
    status: str
    currency: str
    customer: str
    items: tuple[PulledItem, ...]
    discounts: tuple[PulledDiscount, ...] = ()
    trial_end: datetime | None = None
    collection_paused: bool = False
    cancels_at_period_end: bool = False
    started_at: datetime | None = None
    period_start: datetime | None = None
    """When the period began whose payment is due or was made last."""
    past_due_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class PulledCharge:
    """One payment; `card` is a hash under a key that no one keeps, amounts are minor units."""

    charge_id: str
    created_at: datetime
    currency: str
    succeeded: bool
    live: bool
    captured: int
    refunded: int
    transferred: int = 0
    """What went on to another account behind the seller's."""
    dispute: str | None = None
    """The state of its dispute: `open` when that is not known."""
    customer: str | None = None
    card: str | None = None


@dataclass(frozen=True, slots=True)
class CurrencyFigures:
    """What one currency earned in a window, in its minor units; currencies are never added.

    `orders` counts orders or payments. Only subscriptions have the last two: what of `mrr` ends
    with the period, and how many pay.
    """

    currency: str
    revenue30d: int
    mrr: int
    annualised: int
    orders: int
    mrr_at_risk: int | None = None
    subscribers: int | None = None


@dataclass(frozen=True, slots=True)
class SkippedOrders:
    """How many orders, payments or subscriptions did not count, and why."""

    reason: str
    orders: int


@dataclass(frozen=True, slots=True)
class Measure:
    """What one window comes to, with the red flags a reviewer should see."""

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
