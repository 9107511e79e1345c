"""What was pulled from the commerce platform or the payment processor, and what a sync makes of it.

Only what was pulled is measured, never delivered webhooks: a merchant owns the app secret and could
forge a delivery for its own shop (rules/shops#webhooks). What an order
is made of is not frozen: shops have hundreds of thousands, and freezing costs a call for each field.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from tolsey.storage.owners import OF_LISTINGS, OF_LISTINGS_OF_STORE
from tolsey.storage.tables import Integer, Jsonb, stored

DEFINITION: Final = "rv2"
"""The rules that new snapshots are made by; those made by others stay as they are."""


@dataclass(slots=True)
class PulledLine:
    """One line of an order; the amount leaves out the units that were returned or removed."""

    after_discounts_before_taxes: Decimal
    is_gift_card: bool = False
    selling_plan: str | None = None


@dataclass(slots=True, kw_only=True)
class PulledTransaction:
    """One movement of money on an order, as the platform names its kind and status."""

    kind: str
    status: str
    test: bool
    manual_payment_gateway: bool
    amount: Decimal
    gateway: str | None
    has_fees: bool
    """Whether the platform's own processor asked a fee for it, which no app can write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledRefund:
    """One refund: what goes back, and what it is for."""

    at: datetime
    paid_back: Decimal
    """What has gone back or is under way, through any gateway."""
    goods: Decimal
    """What the returned units cost without the tax that was added to them."""
    returned: Decimal
    """What the returned units, shipping and duties cost with their tax."""


@dataclass(slots=True, kw_only=True)
class PulledOrder:
    """One order; every amount is in `currency`, the shop's money at the time of the order.

    Of the sums only `total` is that of the sale; the others are what is left of them now.
    """

    order_id: str
    processed_at: datetime
    created_at: datetime | None
    currency: str
    test: bool
    cancelled_at: datetime | None
    source_name: str | None
    has_checkout: bool
    """Whether a buyer went through the platform's checkout: it has that checkout's token."""
    disputes: tuple[str, ...]
    """The states of the chargebacks and inquiries about its payments."""
    total: Decimal
    current_total: Decimal
    tax: Decimal
    shipping: Decimal
    tip: Decimal
    duties: Decimal
    duties_included: bool
    additional_fees: Decimal
    lines: tuple[PulledLine, ...]
    transactions: tuple[PulledTransaction, ...]
    refunds: tuple[PulledRefund, ...] = ()


@dataclass(frozen=True, slots=True)
class Tier:
    """One step of a price by quantity; `up_to` is None for the last, amounts are minor units."""

    up_to: int | None
    unit_amount: Decimal
    flat_amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledPrice:
    """A recurring price; `tiers_mode` is None when every unit costs the same.

    Its amounts are in `currency`, which is not always the currency of a subscription to it.
    """

    currency: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledDiscount:
    """A discount of an item or a subscription; without percent and amount its terms are unknown."""

    duration: str
    start: datetime | None
    end: datetime | None
    percent_off: Decimal | None = None
    amount_off: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledItem:
    """One item of a subscription; `inclusive_tax_percent` is what its known tax rates say."""

    price: PulledPrice
    quantity: int
    discounts: tuple[PulledDiscount, ...] = ()
    inclusive_tax_percent: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyFigures:
    """What one currency earned in a window, in its minor units; currencies are never added.

    `orders` counts orders or payments. Only subscriptions have `mrr_at_risk` (what of `mrr` ends
    with the period) and `subscribers` (how many pay), only shops what comes after them.
    """

    currency: str
    revenue30d: int
    mrr: int
    annualised: int
    orders: int
    mrr_at_risk: int | None = None
    subscribers: int | None = None
    refunds_of_earlier_orders30d: int | None = None
    """What went back in the window of orders from before it; `revenue30d` is without it."""


@dataclass(frozen=True, slots=True)
class SkippedOrders:
    """How many orders, payments or subscriptions did not count, and why."""

    reason: str
    orders: int


@dataclass(frozen=True, slots=True)
class UnprovenOrders:
    """How many orders of one source, paid through one gateway, did not count: nothing proves them."""

    gateway: str
    source: str
    orders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one window comes to, with the red flags a reviewer should see."""

    figures: tuple[CurrencyFigures, ...] = ()
    orders: int = 0
    skipped: tuple[SkippedOrders, ...] = ()
    flags: tuple[str, ...] = ()
    unproven: tuple[UnprovenOrders, ...] = ()


@stored(
    "revenue_snapshots",
    key=("listing_id", "source", "window_end"),
    conflict="ON CONFLICT (listing_id, source, window_end) DO NOTHING",
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="revenueSnapshots",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSnapshot:
    """A good sync, kept for good: a row of revenue_snapshots, never written again.

    `verified` says that the shop had thirty days of history then. `figures`, `skipped` and
    `unproven` are JSON text: figures by currency in minor units, skipped orders by reason, and
    those with no proven payment by gateway and source.
    """

    listing_id: str
    window_end: datetime
    window_start: datetime
    source: str
    shop_domain: str
    definition: str
    shop_currency: str
    verified: bool
    figures: Annotated[str, Jsonb]
    orders: Annotated[int, Integer]
    skipped: Annotated[str, Jsonb]
    flags: Annotated[str, Jsonb]
    unproven: Annotated[str, Jsonb] = "[]"
