"""What a shop's deliveries leave behind: one row for each thing, as it last was.

A buyer appears only as a pseudonym. Money is in minor units of its currency. Ids are the
platform's own 64-bit integers. A row with `deleted_at` is a tombstone: it holds nothing but its
id, so that an older delivery cannot bring the thing back.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """One delivery; its unique row is what makes a second one a duplicate."""

    store_id: str
    delivery_id: str
    topic: str
    event_id: str | None
    shop_domain: str
    triggered_at: datetime | None


@dataclass(frozen=True, slots=True)
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
    customer_hash: str | None = None
    metadata: str = "{}"
    processed_at: datetime | None = None
    created_at_platform: datetime | None = None
    cancelled_at: datetime | None = None
    parts: str | None = None


@dataclass(frozen=True, slots=True)
class CommerceRefund:
    """Money given back on an order: what its successful refund transactions add up to."""

    store_id: str
    refund_id: int
    order_id: int
    currency: str | None
    amount_minor: int | None
    processed_at: datetime | None
    created_at_platform: datetime | None


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    variants: str = "[]"
    variant_count: int = 0
    published_at: datetime | None = None
    created_at_platform: datetime | None = None


@dataclass(frozen=True, slots=True)
class CommerceCustomer:
    """A buyer of a store, known by the store's own pseudonym of the e-mail address."""

    store_id: str
    customer_id: int
    updated_at: datetime
    deleted_at: datetime | None = None
    email_hash: str | None = None
    state: str | None = None
    verified_email: bool | None = None
    currency: str | None = None
    created_at_platform: datetime | None = None


@dataclass(frozen=True, slots=True)
class CommerceInventoryLevel:
    """How many of an item a location has; None when the item is not tracked."""

    store_id: str
    inventory_item_id: int
    location_id: int
    updated_at: datetime
    available: int | None
