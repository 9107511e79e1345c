"""Tables for what a shop's deliveries leave behind."""

from dataclasses import fields
from typing import Any

from tolsey.storage.records.commerce.deliveries import (
    CommerceCustomer,
    CommerceFulfillment,
    CommerceInventoryLevel,
    CommerceOrder,
    CommerceProduct,
    CommerceRefund,
    WebhookEvent,
)
from tolsey.storage.tables import table

KEPT = {
    "parts": "CASE WHEN excluded.deleted_at IS NULL"
    " THEN coalesce(excluded.{column}, {name}.{column}) END"
}
"""What is left as it was by a newer body that does not tell it."""


def newer_wins(record: type[Any], name: str, *key: str, tombstones: bool = False) -> str:
    """Say `ON CONFLICT` for a row that is replaced whole, unless what is kept is newer.

    Deliveries come in any order (product page "The commerce platform", section 2), so an older
    one must change nothing; a tombstone beats every age and nothing brings its thing back.
    """
    columns = [field.name for field in fields(record) if field.name not in key]
    assigned = ", ".join(
        f"{column} = {KEPT.get(column, 'excluded.{column}').format(column=column, name=name)}"
        for column in columns
    )
    newer = f"excluded.updated_at >= {name}.updated_at"
    if tombstones:
        newer = f"{name}.deleted_at IS NULL AND (excluded.deleted_at IS NOT NULL OR {newer})"
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {assigned} WHERE {newer}"


table(
    WebhookEvent,
    "commerce_webhook_events",
    {
        "store_id": "text",
        "delivery_id": "text",
        "topic": "text",
        "event_id": "text",
        "shop_domain": "text",
        "triggered_at": "timestamptz",
    },
    key=("store_id", "delivery_id"),
    claim=True,
    kept=(
        "'webhook:' || {row}.store_id",
        "'webhook:' || {row}.store_id || ':' || {row}.delivery_id",
    ),
)

table(
    CommerceOrder,
    "commerce_orders",
    {
        "store_id": "text",
        "order_id": "bigint",
        "updated_at": "timestamptz",
        "deleted_at": "timestamptz",
        "name": "text",
        "currency": "text",
        "total_minor": "bigint",
        "current_total_minor": "bigint",
        "financial_status": "text",
        "fulfillment_status": "text",
        "test": "boolean",
        "source_name": "text",
        "customer_hash": "text",
        "metadata": "jsonb",
        "processed_at": "timestamptz",
        "created_at_platform": "timestamptz",
        "cancelled_at": "timestamptz",
        "parts": "jsonb",
    },
    conflict=newer_wins(CommerceOrder, "commerce_orders", "store_id", "order_id", tombstones=True),
    key=("store_id", "order_id"),
    newest=("deleted_at", "updated_at"),
)

table(
    CommerceRefund,
    "commerce_refunds",
    {
        "store_id": "text",
        "refund_id": "bigint",
        "order_id": "bigint",
        "currency": "text",
        "amount_minor": "bigint",
        "processed_at": "timestamptz",
        "created_at_platform": "timestamptz",
    },
    # What a refund gave back only grows: its transactions are pending before they succeed.
    conflict="""ON CONFLICT (store_id, refund_id) DO UPDATE
    SET currency = excluded.currency, amount_minor = excluded.amount_minor,
        processed_at = excluded.processed_at
    WHERE commerce_refunds.amount_minor IS NULL
       OR excluded.amount_minor > commerce_refunds.amount_minor""",
    key=("store_id", "refund_id"),
    newest=("amount_minor",),
)

table(
    CommerceFulfillment,
    "commerce_fulfillments",
    {
        "store_id": "text",
        "fulfillment_id": "bigint",
        "order_id": "bigint",
        "updated_at": "timestamptz",
        "status": "text",
        "shipment_status": "text",
        "tracking_company": "text",
        "location_id": "bigint",
        "created_at_platform": "timestamptz",
    },
    conflict=newer_wins(CommerceFulfillment, "commerce_fulfillments", "store_id", "fulfillment_id"),
    key=("store_id", "fulfillment_id"),
    newest=("updated_at",),
)

table(
    CommerceProduct,
    "commerce_products",
    {
        "store_id": "text",
        "product_id": "bigint",
        "updated_at": "timestamptz",
        "deleted_at": "timestamptz",
        "title": "text",
        "handle": "text",
        "vendor": "text",
        "product_type": "text",
        "status": "text",
        "tags": "text",
        "variants": "jsonb",
        "variant_count": "int",
        "published_at": "timestamptz",
        "created_at_platform": "timestamptz",
    },
    conflict=newer_wins(
        CommerceProduct, "commerce_products", "store_id", "product_id", tombstones=True
    ),
    key=("store_id", "product_id"),
    newest=("deleted_at", "updated_at"),
)

table(
    CommerceCustomer,
    "commerce_customers",
    {
        "store_id": "text",
        "customer_id": "bigint",
        "updated_at": "timestamptz",
        "deleted_at": "timestamptz",
        "email_hash": "text",
        "state": "text",
        "verified_email": "boolean",
        "currency": "text",
        "created_at_platform": "timestamptz",
    },
    conflict=newer_wins(
        CommerceCustomer, "commerce_customers", "store_id", "customer_id", tombstones=True
    ),
    key=("store_id", "customer_id"),
    newest=("deleted_at", "updated_at"),
)

table(
    CommerceInventoryLevel,
    "commerce_inventory_levels",
    {
        "store_id": "text",
        "inventory_item_id": "bigint",
        "location_id": "bigint",
        "updated_at": "timestamptz",
        "available": "bigint",
    },
    conflict=newer_wins(
        CommerceInventoryLevel,
        "commerce_inventory_levels",
        "store_id",
        "inventory_item_id",
        "location_id",
    ),
    key=("store_id", "inventory_item_id", "location_id"),
    newest=("updated_at",),
)
