"""What a shop's deliveries leave behind: one row for each thing, as it last was.

A buyer appears only as a pseudonym. Money is in minor units of its currency. Ids are the
platform's own 64-bit integers. A row with `deleted_at` is a tombstone: it holds nothing but its
id, so that an older delivery cannot bring the thing back.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.owners import (
    OF_SHOP,
    OF_STORE,
    WITH_ORDERS_OF_BUYER,
    Belongs,
    RowOwner,
)
from tolsey.storage.tables import Age, Integer, Jsonb, Personal, stored

NEWER: Final = "excluded.updated_at >= {0}.updated_at"
"""Deliveries come in any order (rules/shops#webhooks): an older one changes nothing."""
NEWEST: Final = {"updated_at": "greatest(updated_at, now())"}
"""What is emptied for its buyer is newer than any delivery that told of it: none brings it back."""
NEWER_OR_DELETED: Final = (
    f"{{0}}.deleted_at IS NULL AND (excluded.deleted_at IS NOT NULL OR {NEWER})"
)
"""A tombstone beats every age, and nothing brings its thing back."""
CAME_FROM: Final = ("source", "medium", "campaign", "landing_page", "referrer")


@stored(
    "commerce_webhook_events",
    key=("store_id", "delivery_id"),
    claim=True,
    kept=(
        "'webhook:' || {row}.store_id",
        "'webhook:' || {row}.store_id || ':' || {row}.delivery_id",
    ),
    besides={"created_at": datetime},
    retention=Age(column="created_at", interval="7 days"),
    belongs=OF_STORE,
    export="deliveries",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """One delivery; its unique row is what makes a second one a duplicate."""

    store_id: str
    delivery_id: str
    topic: str
    event_id: str | None
    shop_domain: str
    triggered_at: datetime | None


@stored(
    "commerce_orders",
    key=("store_id", "order_id"),
    newest=("deleted_at", "updated_at"),
    # What is left as it was by a newer body that does not tell it.
    merged={
        "parts": "CASE WHEN excluded.deleted_at IS NULL"
        " THEN coalesce(excluded.parts, commerce_orders.parts) END"
    },
    when=NEWER_OR_DELETED.format("commerce_orders"),
    export="orders",
    belongs=(
        OF_SHOP,
        Belongs(
            to=RowOwner.BUYER,
            by="customer_hash",
            emptied={"customer_hash": "NULL", "metadata": "'{}'", **NEWEST},
        ),
    ),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceOrder:
    """An order; `metadata` is JSON text of its tags and note attributes, the only free text.

    `parts` is JSON text of its lines, discounts and shipping; None where a body does not tell them.
    """

    store_id: str
    order_id: int
    updated_at: datetime
    deleted_at: datetime | None = None
    name: str | None = None
    currency: str | None = None
    total_minor: int | None = None
    current_total_minor: int | None = None
    financial_status: str | None = None
    fulfillment_status: str | None = None
    test: bool = False
    source_name: str | None = None
    customer_hash: Annotated[str | None, Personal.PSEUDONYM] = None
    metadata: Annotated[str, Jsonb, Personal.FREE_TEXT] = "{}"
    processed_at: datetime | None = None
    created_at_platform: datetime | None = None
    cancelled_at: datetime | None = None
    parts: Annotated[str | None, Jsonb] = None
    cancel_reason: str | None = None


@stored(
    "attribution_touches",
    key=("store_id", "order_id"),
    newest=("deleted_at", "updated_at"),
    # An order is told of many times, and where its buyer came from does not change.
    when=f"({NEWER_OR_DELETED.format('attribution_touches')}) AND ("
    + " OR ".join(
        f"attribution_touches.{one} IS DISTINCT FROM excluded.{one}"
        for one in ("deleted_at", "touched_at", "session_id", *CAME_FROM)
    )
    + ")",
    belongs=(
        OF_SHOP,
        Belongs(
            to=RowOwner.BUYER,
            by="session_id",
            emptied={**dict.fromkeys(("session_id", "touched_at", *CAME_FROM), "NULL"), **NEWEST},
        ),
    ),
    export="attributionTouches",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionTouch:
    """Where the buyer of an order came from; `session_id` is the buyer's pseudonym, as the order's.

    Of the landing page its path and of the referrer its host: the rest of an address may name a person.
    It goes with its order.
    """

    store_id: str
    order_id: int
    updated_at: datetime
    deleted_at: datetime | None = None
    touched_at: datetime | None = None
    session_id: Annotated[str | None, Personal.PSEUDONYM] = None
    source: str | None = None
    medium: str | None = None
    campaign: str | None = None
    landing_page: str | None = None
    referrer: str | None = None


@stored(
    "commerce_refunds",
    key=("store_id", "refund_id"),
    newest=("amount_minor", "reason"),
    # What a refund gave back only grows: its transactions are pending before they succeed. An export
    # does not say why; the delivery of the same refund does.
    replaces=("currency", "amount_minor", "processed_at", "reason"),
    merged={
        "currency": "coalesce(excluded.currency, commerce_refunds.currency)",
        "amount_minor": "greatest(excluded.amount_minor, commerce_refunds.amount_minor)",
        "processed_at": "coalesce(excluded.processed_at, commerce_refunds.processed_at)",
        "reason": "coalesce(commerce_refunds.reason, excluded.reason)",
    },
    when="commerce_refunds.amount_minor IS NULL"
    " OR excluded.amount_minor > commerce_refunds.amount_minor"
    " OR commerce_refunds.reason IS NULL AND excluded.reason IS NOT NULL",
    export="refunds",
    belongs=(OF_SHOP, WITH_ORDERS_OF_BUYER),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceRefund:
    """Money given back on an order: what its successful refund transactions add up to.

    `reason` is what became of the goods, as far as the shop told it; None where nothing did.
    """

    store_id: str
    refund_id: int
    order_id: int
    currency: str | None
    amount_minor: int | None
    processed_at: datetime | None
    created_at_platform: datetime | None
    reason: str | None = None


@stored(
    "commerce_fulfillments",
    key=("store_id", "fulfillment_id"),
    newest=("updated_at",),
    when=NEWER.format("commerce_fulfillments"),
    export="fulfillments",
    belongs=(OF_SHOP, WITH_ORDERS_OF_BUYER),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceFulfillment:
    """A parcel of an order and how far it is."""

    store_id: str
    fulfillment_id: int
    order_id: int
    updated_at: datetime
    status: str | None
    shipment_status: str | None
    tracking_company: str | None
    location_id: int | None
    created_at_platform: datetime | None


@stored(
    "commerce_products",
    key=("store_id", "product_id"),
    newest=("deleted_at", "updated_at"),
    when=NEWER_OR_DELETED.format("commerce_products"),
    export="products",
    belongs=OF_SHOP,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceProduct:
    """A product; `variants` is JSON text: id, title, sku, price, item, quantity, if it is tracked.

    Prices stay decimal text there: a product's delivery does not name their currency.
    """

    store_id: str
    product_id: int
    updated_at: datetime
    deleted_at: datetime | None = None
    title: str | None = None
    handle: str | None = None
    vendor: str | None = None
    product_type: str | None = None
    status: str | None = None
    tags: str | None = None
    variants: Annotated[str, Jsonb] = "[]"
    variant_count: Annotated[int, Integer] = 0
    published_at: datetime | None = None
    created_at_platform: datetime | None = None


@stored(
    "commerce_customers",
    key=("store_id", "customer_id"),
    newest=("deleted_at", "updated_at"),
    when=NEWER_OR_DELETED.format("commerce_customers"),
    export="customers",
    belongs=(
        OF_SHOP,
        Belongs(
            to=RowOwner.BUYER,
            by="email_hash",
            emptied={
                "email_hash": "NULL",
                "state": "NULL",
                "verified_email": "NULL",
                "currency": "NULL",
                "created_at_platform": "NULL",
                "deleted_at": "coalesce(deleted_at, now())",
                **NEWEST,
            },
        ),
    ),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceCustomer:
    """A buyer of a store, known by the store's own pseudonym of the e-mail address."""

    store_id: str
    customer_id: Annotated[int, Personal.PSEUDONYM]
    updated_at: datetime
    deleted_at: datetime | None = None
    email_hash: Annotated[str | None, Personal.PSEUDONYM] = None
    state: str | None = None
    verified_email: bool | None = None
    currency: str | None = None
    created_at_platform: datetime | None = None


@stored(
    "commerce_inventory_levels",
    key=("store_id", "inventory_item_id", "location_id"),
    newest=("updated_at",),
    when=NEWER.format("commerce_inventory_levels"),
    export="inventoryLevels",
    belongs=OF_SHOP,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommerceInventoryLevel:
    """How many of an item a location has; None when the item is not tracked."""

    store_id: str
    inventory_item_id: int
    location_id: int
    updated_at: datetime
    available: int | None
