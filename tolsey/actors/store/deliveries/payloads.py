"""Readers of the platform's bodies: what of each topic becomes a message to a store.

A reader keeps ids, amounts, statuses and the store's pseudonym of a buyer. Names, addresses,
phones and e-mails end here: no message holds one. A body that is not as documented raises
Unreadable.
"""

from typing import Any

from tolsey.actors import bodies
from tolsey.actors.bodies import Body, Unreadable
from tolsey.actors.store.deliveries import fields
from tolsey.actors.store.deliveries.attribution import touch_of
from tolsey.actors.store.deliveries.messages import (
    CustomerChanged,
    FulfillmentChanged,
    InventoryChanged,
    OrderChanged,
    OrderEdited,
    ProductChanged,
    RefundCreated,
)
from tolsey.actors.store.deliveries.reading import Reading, audit, changed_at, json_text, known_as
from tolsey.actors.store.imports.messages import ImportedOrder
from tolsey.storage.records.commerce.deliveries import (
    AttributionTouch,
    CommerceCustomer,
    CommerceFulfillment,
    CommerceInventoryLevel,
    CommerceOrder,
    CommerceProduct,
    CommerceRefund,
)
from tolsey.storage.records.money.currencies import to_minor

NOTE_ATTRIBUTES_KEPT = 100
VARIANTS_KEPT = 250
TAG_CHARACTERS = 5_000
REFUNDS_KEPT = 250
LINES_KEPT = 250
DISCOUNTS_KEPT = 50
RESTOCKED = {"return": "returned", "legacy_restock": "returned", "cancel": "removed"}
"""What became of a refund's goods, by the platform's word for how each line was put back into stock."""


def buyer(reading: Reading, customer: Body, order: Body) -> str | None:
    """Name the buyer of an order.

    The account's address comes before the one typed at the checkout: it is what the platform's
    erasure requests name, and what the customer's own row is known by.
    """
    email = (
        fields.text(customer, "email")
        or fields.text(order, "email")
        or fields.text(order, "contact_email")
    )
    return known_as(reading, email, fields.number(customer, "id"))


def order_row(reading: Reading, body: Body) -> CommerceOrder:
    """Read an order as it now is."""
    code = fields.currency(body, "currency")
    return CommerceOrder(
        store_id=reading.store_id,
        order_id=fields.identifier(body, "id"),
        updated_at=changed_at(body, reading),
        name=fields.text(body, "name", 100),
        currency=code,
        total_minor=fields.minor(body, "total_price", code),
        current_total_minor=fields.minor(body, "current_total_price", code),
        financial_status=fields.text(body, "financial_status", 50),
        fulfillment_status=fields.text(body, "fulfillment_status", 50),
        test=bool(fields.flag(body, "test")),
        source_name=fields.text(body, "source_name", 100),
        customer_hash=buyer(reading, bodies.table(body, "customer"), body),
        metadata=free_text(body),
        processed_at=fields.moment(body, "processed_at"),
        created_at_platform=fields.moment(body, "created_at"),
        cancelled_at=fields.moment(body, "cancelled_at"),
        parts=parts_of(body),
        cancel_reason=fields.text(body, "cancel_reason", 50),
    )


def parts_of(body: Body) -> str | None:
    """Keep what an order is made of; None where the body does not tell it, or not as documented.

    No order is lost for its lines: its money counts without them. A line that is of no product is named by whoever typed it, and its properties by the buyer: neither is
    kept (rules/shops#customers).
    """
    if "line_items" not in body:
        return None
    try:
        return json_text(
            {
                "lines": [line(row) for row in bodies.rows(body, "line_items")[:LINES_KEPT]],
                "discounts": [
                    {"code": fields.text(row, "code", 100), "amount": amount_of(row, "amount")}
                    for row in bodies.rows(body, "discount_codes")[:DISCOUNTS_KEPT]
                ],
                "totalDiscounts": amount_of(body, "total_discounts"),
                "shipping": [
                    {"title": fields.text(row, "title", 255), "price": amount_of(row, "price")}
                    for row in bodies.rows(body, "shipping_lines")[:DISCOUNTS_KEPT]
                ],
            }
        )
    except Unreadable:
        return None


def line(row: Body) -> dict[str, Any]:
    """Read what was ordered of one thing."""
    product_id = fields.number(row, "product_id")
    return {
        "id": fields.number(row, "id"),
        "productId": product_id,
        "variantId": fields.number(row, "variant_id"),
        "title": None if product_id is None else fields.text(row, "title", 255),
        "variantTitle": None if product_id is None else fields.text(row, "variant_title", 255),
        "sku": fields.text(row, "sku", 255),
        "quantity": fields.number(row, "quantity"),
        "currentQuantity": fields.number(row, "current_quantity"),
        "price": amount_of(row, "price"),
        "discount": amount_of(row, "total_discount"),
    }


def amount_of(row: Body, field: str) -> str | None:
    """Read an amount as decimal text."""
    value = row.get(field)
    return None if value is None else str(fields.amount(value, field))


def free_text(body: Body) -> str:
    """Keep an order's tags and note attributes."""
    tags = fields.text(body, "tags", TAG_CHARACTERS)
    attributes = [
        {"name": fields.text(row, "name"), "value": attribute_value(row)}
        for row in bodies.rows(body, "note_attributes")[:NOTE_ATTRIBUTES_KEPT]
    ]
    if not tags and not attributes:
        return "{}"
    return json_text({"tags": tags or "", "noteAttributes": attributes})


def attribute_value(row: Body) -> str | None:
    """Read a note attribute's value, which apps also write as number or flag."""
    value = row.get("value")
    return None if value is None else fields.clean(str(value))


def imported_order(body: Body, reading: Reading) -> ImportedOrder:
    """Read a whole order, with what was given back on it before and where its buyer came from."""
    order = order_row(reading, body)
    return ImportedOrder(
        order=order,
        touch=touch_of(order, body),
        refunds=tuple(
            refund_row(reading, one) for one in bodies.rows(body, "refunds")[:REFUNDS_KEPT]
        ),
        customer_id=fields.number(bodies.table(body, "customer"), "id"),
    )


def order_changed(body: Body, reading: Reading) -> OrderChanged:
    """Read any topic that carries a whole order."""
    said = imported_order(body, reading)
    order = said.order
    payload = {
        "id": order.order_id,
        "name": order.name,
        "updatedAt": order.updated_at,
        "currency": order.currency,
        "totalMinor": order.total_minor,
        "currentTotalMinor": order.current_total_minor,
        "financialStatus": order.financial_status,
        "fulfillmentStatus": order.fulfillment_status,
        "test": order.test,
        "cancelledAt": order.cancelled_at,
        "customerHash": order.customer_hash,
    }
    return OrderChanged(
        delivery=reading.delivery,
        order=order,
        audit=audit(reading, payload),
        refunds=said.refunds,
        touch=said.touch,
    )


def order_deleted(body: Body, reading: Reading) -> OrderChanged:
    """Read the deletion of an order."""
    at = reading.delivery.at
    order = CommerceOrder(
        store_id=reading.store_id,
        order_id=fields.identifier(body, "id"),
        updated_at=at,
        deleted_at=at,
    )
    touch = AttributionTouch(
        store_id=reading.store_id, order_id=order.order_id, updated_at=at, deleted_at=at
    )
    return OrderChanged(
        delivery=reading.delivery,
        order=order,
        audit=audit(reading, {"id": order.order_id}),
        touch=touch,
    )


def order_edited(body: Body, reading: Reading) -> OrderEdited:
    """Read which order was edited."""
    edit = bodies.table(body, "order_edit")
    order_id = fields.identifier(edit, "order_id")
    payload = {"orderId": order_id, "id": fields.number(edit, "id")}
    return OrderEdited(reading.delivery, order_id, audit(reading, payload))


def refund_row(reading: Reading, body: Body) -> CommerceRefund:
    """Read a refund: what its successful refund transactions gave back."""
    code = refund_currency(body)
    given = [
        to_minor(fields.amount(row.get("amount"), "transactions.amount"), code)
        for row in bodies.rows(body, "transactions")
        if code is not None
        and row.get("kind") == "refund"
        and row.get("status") == "success"
        and row.get("currency") in (None, code)
    ]
    return CommerceRefund(
        store_id=reading.store_id,
        refund_id=fields.identifier(body, "id"),
        order_id=fields.identifier(body, "order_id"),
        currency=code,
        amount_minor=None if code is None else sum(given),
        processed_at=fields.moment(body, "processed_at"),
        created_at_platform=fields.moment(body, "created_at"),
        reason=reason_of(body),
    )


def reason_of(body: Body) -> str | None:
    """Tell why a refund was made by what became of the goods; the note, which may name a person, is not kept."""
    if "refund_line_items" not in body:
        return None
    kinds = {fields.text(row, "restock_type") for row in bodies.rows(body, "refund_line_items")}
    known = (reason for kind, reason in RESTOCKED.items() if kind in kinds)
    return next(known, "amount_only" if not kinds else "not_returned")


def refund_created(body: Body, reading: Reading) -> RefundCreated:
    """Read a refund that was just made."""
    refund = refund_row(reading, body)
    payload = {
        "id": refund.refund_id,
        "orderId": refund.order_id,
        "currency": refund.currency,
        "amountMinor": refund.amount_minor,
        "processedAt": refund.processed_at,
    }
    return RefundCreated(reading.delivery, refund, audit(reading, payload))


def refund_currency(body: Body) -> str | None:
    """Find the currency of a refund: its transactions' own, else the one of its line amounts."""
    for row in bodies.rows(body, "transactions"):
        if row.get("kind") == "refund" and (code := fields.currency(row, "currency")):
            return code
    sets = [bodies.table(row, "subtotal_set") for row in bodies.rows(body, "refund_line_items")]
    for amounts in (*sets, bodies.table(body, "total_duties_set")):
        if code := fields.currency(bodies.table(amounts, "shop_money"), "currency_code"):
            return code
    return None


def fulfillment_changed(body: Body, reading: Reading) -> FulfillmentChanged:
    """Read a parcel. Its tracking number is left out: with the carrier it leads to a person."""
    fulfillment = CommerceFulfillment(
        store_id=reading.store_id,
        fulfillment_id=fields.identifier(body, "id"),
        order_id=fields.identifier(body, "order_id"),
        updated_at=changed_at(body, reading),
        status=fields.text(body, "status", 50),
        shipment_status=fields.text(body, "shipment_status", 50),
        tracking_company=fields.text(body, "tracking_company", 100),
        location_id=fields.number(body, "location_id"),
        created_at_platform=fields.moment(body, "created_at"),
    )
    payload = {
        "id": fulfillment.fulfillment_id,
        "orderId": fulfillment.order_id,
        "status": fulfillment.status,
        "shipmentStatus": fulfillment.shipment_status,
        "updatedAt": fulfillment.updated_at,
    }
    return FulfillmentChanged(reading.delivery, fulfillment, audit(reading, payload))


def product_changed(body: Body, reading: Reading) -> ProductChanged:
    """Read a product; beyond a hundred variants the platform names only their ids."""
    variants = bodies.rows(body, "variants")
    product = CommerceProduct(
        store_id=reading.store_id,
        product_id=fields.identifier(body, "id"),
        updated_at=changed_at(body, reading),
        title=fields.text(body, "title"),
        handle=fields.text(body, "handle"),
        vendor=fields.text(body, "vendor"),
        product_type=fields.text(body, "product_type"),
        status=fields.text(body, "status", 50),
        tags=fields.text(body, "tags", TAG_CHARACTERS),
        variants=json_text([variant(row) for row in variants[:VARIANTS_KEPT]]),
        variant_count=max(len(variants), len(bodies.rows(body, "variant_gids"))),
        published_at=fields.moment(body, "published_at"),
        created_at_platform=fields.moment(body, "created_at"),
    )
    payload = {
        "id": product.product_id,
        "status": product.status,
        "variants": product.variant_count,
        "updatedAt": product.updated_at,
    }
    return ProductChanged(reading.delivery, product, audit(reading, payload))


def variant(row: Body) -> dict[str, Any]:
    """Read what can be bought of a product; `tracked` is there where the platform tells it."""
    tracked = {}
    if "inventory_management" in row:
        # null is a word of its own here: nobody manages the stock
        tracked = {"tracked": fields.text(row, "inventory_management") is not None}
    return {
        "id": fields.identifier(row, "id"),
        "title": fields.text(row, "title"),
        "sku": fields.text(row, "sku", 255),
        "price": amount_of(row, "price"),
        "inventoryItemId": fields.number(row, "inventory_item_id"),
        "inventoryQuantity": fields.number(row, "inventory_quantity"),
        **tracked,
    }


def product_deleted(body: Body, reading: Reading) -> ProductChanged:
    """Read the deletion of a product."""
    at = reading.delivery.at
    product = CommerceProduct(
        store_id=reading.store_id,
        product_id=fields.identifier(body, "id"),
        updated_at=at,
        deleted_at=at,
    )
    return ProductChanged(reading.delivery, product, audit(reading, {"id": product.product_id}))


def customer_changed(body: Body, reading: Reading) -> CustomerChanged:
    """Read a buyer, of whom only the pseudonym stays."""
    customer_id = fields.identifier(body, "id")
    email = fields.text(body, "email")
    customer = CommerceCustomer(
        store_id=reading.store_id,
        customer_id=customer_id,
        updated_at=changed_at(body, reading),
        email_hash=known_as(reading, email, customer_id),
        state=fields.text(body, "state", 50),
        verified_email=fields.flag(body, "verified_email"),
        currency=fields.currency(body, "currency"),
        created_at_platform=fields.moment(body, "created_at"),
    )
    payload = {
        "id": customer_id,
        "customerHash": customer.email_hash,
        "state": customer.state,
        "updatedAt": customer.updated_at,
    }
    return CustomerChanged(reading.delivery, customer, audit(reading, payload))


def customer_deleted(body: Body, reading: Reading) -> CustomerChanged:
    """Read the deletion of a buyer: the pseudonym goes too."""
    at = reading.delivery.at
    customer = CommerceCustomer(
        store_id=reading.store_id,
        customer_id=fields.identifier(body, "id"),
        updated_at=at,
        deleted_at=at,
    )
    payload = {"id": customer.customer_id}
    return CustomerChanged(reading.delivery, customer, audit(reading, payload))


def inventory_changed(body: Body, reading: Reading) -> InventoryChanged:
    """Read how many of an item a location has."""
    level = CommerceInventoryLevel(
        store_id=reading.store_id,
        inventory_item_id=fields.identifier(body, "inventory_item_id"),
        location_id=fields.identifier(body, "location_id"),
        updated_at=changed_at(body, reading),
        available=fields.number(body, "available"),
    )
    payload = {
        "inventoryItemId": level.inventory_item_id,
        "locationId": level.location_id,
        "available": level.available,
        "updatedAt": level.updated_at,
    }
    return InventoryChanged(reading.delivery, level, audit(reading, payload))
