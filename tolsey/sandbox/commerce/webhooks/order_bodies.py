"""Webhook bodies of orders, refunds, fulfilments and edits."""

from datetime import datetime
from typing import Any

from tolsey.sandbox.commerce.shop.money import digits, plain
from tolsey.sandbox.commerce.shop.orders import Line, Order, Refund, RefundedLine, Transaction
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.webhooks.bodies import address, customer_body, local


def money_set(minor: int, currency: str) -> dict[str, Any]:
    """Write an amount in both currencies, which are the same here."""
    amount = {"amount": plain(minor, currency), "currency_code": currency}
    return {"shop_money": amount, "presentment_money": amount}


ALWAYS_NULL = (
    "browser_ip",
    "cart_token",
    "checkout_token",
    "client_details",
    "confirmation_number",
    "device_id",
    "landing_site_ref",
    "location_id",
    "merchant_business_entity_id",
    "merchant_of_record_app_id",
    "phone",
    "po_number",
    "reference",
    "source_identifier",
    "source_url",
    "user_id",
    "payment_terms",
)
"""What an order's body names and these orders never have."""


def order_body(shop: Shop, order: Order) -> dict[str, Any]:
    """Describe an order as `orders/*` does."""
    customer = order.customer
    where = address(shop, customer) if customer else None
    email = customer.email if customer else None
    return {
        "id": order.id,
        **dict.fromkeys(ALWAYS_NULL),
        "admin_graphql_api_id": f"gid://shopify/Order/{order.id}",
        "app_id": 580111,
        "buyer_accepts_marketing": False,
        "cancel_reason": order.cancel_reason,
        "cancelled_at": local(order.cancelled_at, shop),
        "closed_at": local(order.closed_at, shop),
        "confirmed": True,
        "contact_email": email,
        "created_at": local(order.created_at, shop),
        "currency": order.currency,
        **_sums(order),
        "customer_locale": "en",
        "discount_codes": [],
        "duties_included": False,
        "email": email,
        "estimated_taxes": False,
        "financial_status": order.financial_status.lower(),
        "landing_site": order.landing_site,
        "referring_site": order.referring_site,
        "fulfillment_status": _fulfilment_status(order),
        "name": order.name,
        "note": order.note,
        "note_attributes": [],
        "number": order.number - 1000,
        "order_number": order.number,
        "order_status_url": f"https://{shop.domain}/orders/{order.id}",
        "payment_gateway_names": order.gateways,
        "presentment_currency": order.currency,
        "processed_at": local(order.processed_at, shop),
        "source_name": order.source_name,
        "tags": ", ".join(order.tags),
        "tax_exempt": False,
        "tax_lines": [],
        "taxes_included": order.taxes_included,
        "test": order.test,
        "token": f"{order.id:x}",
        "total_weight": 0,
        "updated_at": local(order.updated_at, shop),
        "billing_address": where,
        "customer": customer_body(shop, customer) if customer else None,
        "discount_applications": [],
        "fulfillments": [],
        "line_items": [_line_body(order, line) for line in order.lines],
        "refunds": [refund_body(shop, order, refund) for refund in order.refunds],
        "shipping_address": where,
        "shipping_lines": _shipping(order),
        "returns": [],
        "line_item_groups": [],
    }


def _sums(order: Order) -> dict[str, Any]:
    """Write every sum twice, as text and as a set, the way orders do."""
    returned_tax = sum(line.tax for refund in order.refunds for line in refund.lines)
    sums = {
        "current_subtotal_price": order.subtotal - order.returned_value + returned_tax,
        "current_total_discounts": order.discounts,
        "current_total_price": order.current_total,
        "current_total_tax": order.tax - returned_tax,
        "subtotal_price": order.subtotal,
        "total_discounts": order.discounts,
        "total_line_items_price": order.goods,
        "total_price": order.total,
        "total_tax": order.tax,
    }
    written: dict[str, Any] = {}
    for name, minor in sums.items():
        written[name] = plain(minor, order.currency)
        written[name + "_set"] = money_set(minor, order.currency)
    nothing = money_set(0, order.currency)
    return {
        **written,
        "current_shipping_price_set": money_set(order.shipping, order.currency),
        "current_total_additional_fees_set": None,
        "current_total_duties_set": None,
        "original_total_additional_fees_set": None,
        "original_total_duties_set": None,
        "total_cash_rounding_payment_adjustment_set": nothing,
        "total_cash_rounding_refund_adjustment_set": nothing,
        "total_outstanding": plain(order.outstanding, order.currency),
        "total_shipping_price_set": money_set(order.shipping, order.currency),
        "total_tip_received": plain(0, order.currency),
    }


def _fulfilment_status(order: Order) -> str | None:
    words = {"FULFILLED": "fulfilled", "PARTIALLY_FULFILLED": "partial"}
    return words.get(order.fulfillment_status)


def _line_body(order: Order, line: Line) -> dict[str, Any]:
    return {
        "id": line.id,
        "admin_graphql_api_id": f"gid://shopify/LineItem/{line.id}",
        "attributed_staffs": [],
        "current_quantity": line.current_quantity,
        "fulfillable_quantity": line.current_quantity,
        "fulfillment_service": "manual",
        "fulfillment_status": None,
        "gift_card": line.gift_card,
        "grams": 0,
        "name": line.title,
        "price": plain(line.unit_price, order.currency),
        "price_set": money_set(line.unit_price, order.currency),
        "product_exists": line.product_id is not None,
        "product_id": line.product_id,
        "properties": [],
        "quantity": line.quantity,
        "requires_shipping": not line.gift_card,
        "sales_line_item_group_id": None,
        "sku": line.sku or None,
        "taxable": True,
        "title": line.title,
        "total_discount": plain(line.discount, order.currency),
        "total_discount_set": money_set(line.discount, order.currency),
        "variant_id": line.variant_id,
        "variant_inventory_management": None,
        "variant_title": None,
        "vendor": None,
        "tax_lines": [],
        "duties": [],
        "discount_allocations": [],
    }


def _nested_line(order: Order, line: Line) -> dict[str, Any]:
    """Describe a line inside a refund or parcel, which leaves out what only orders tell."""
    only_in_orders = {"attributed_staffs", "current_quantity", "sales_line_item_group_id"}
    whole = _line_body(order, line)
    return {name: value for name, value in whole.items() if name not in only_in_orders}


def _shipping(order: Order) -> list[dict[str, Any]]:
    if not order.shipping:
        return []
    price = plain(order.shipping, order.currency)
    price_set = money_set(order.shipping, order.currency)
    return [
        {
            "id": order.id + 7,
            "carrier_identifier": None,
            "code": "Standard",
            "current_discounted_price_set": price_set,
            "discounted_price": price,
            "discounted_price_set": price_set,
            "is_removed": False,
            "phone": None,
            "price": price,
            "price_set": price_set,
            "requested_fulfillment_service_id": None,
            "source": "shopify",
            "title": "Standard",
            "tax_lines": [],
            "discount_allocations": [],
        }
    ]


def refund_body(shop: Shop, order: Order, refund: Refund) -> dict[str, Any]:
    """Describe a refund as `refunds/create` does."""
    return {
        "id": refund.id,
        "order_id": order.id,
        "created_at": local(refund.created_at, shop),
        "note": refund.note,
        "user_id": None,
        "processed_at": local(refund.created_at, shop),
        "duties": [],
        "total_duties_set": money_set(0, order.currency),
        "return": None,
        "refund_shipping_lines": [],
        "restock": any(line.restock == "RETURN" for line in refund.lines),
        "admin_graphql_api_id": f"gid://shopify/Refund/{refund.id}",
        "order_adjustments": [],
        "refund_line_items": [_refund_line(order, line) for line in refund.lines],
        "transactions": [transaction_body(shop, order, t) for t in refund.transactions],
    }


def _refund_line(order: Order, line: RefundedLine) -> dict[str, Any]:
    # These two sums are numbers, not text, on the platform itself.
    scale = 10 ** digits(order.currency)
    return {
        "id": line.id,
        "quantity": line.quantity,
        "line_item_id": line.line.id,
        "location_id": None,
        "restock_type": line.restock.lower(),
        "subtotal": line.subtotal / scale,
        "total_tax": line.tax / scale,
        "subtotal_set": money_set(line.subtotal, order.currency),
        "total_tax_set": money_set(line.tax, order.currency),
        "line_item": _nested_line(order, line.line),
    }


def transaction_body(shop: Shop, order: Order, transaction: Transaction) -> dict[str, Any]:
    """Describe a transaction as refunds do."""
    nothing = {"amount": plain(0, order.currency), "currency": order.currency}
    return {
        "id": transaction.id,
        "order_id": order.id,
        "kind": transaction.kind.lower(),
        "gateway": transaction.gateway,
        "status": transaction.status.lower(),
        "message": None,
        "created_at": local(transaction.created_at, shop),
        "test": transaction.test,
        "authorization": None,
        "location_id": None,
        "user_id": None,
        "parent_id": transaction.parent_id,
        "processed_at": local(transaction.created_at, shop),
        "device_id": None,
        "error_code": None,
        "source_name": order.source_name,
        "receipt": {},
        "amount": plain(transaction.amount, order.currency),
        "currency": order.currency,
        "payment_id": f"{order.name}.1",
        "total_unsettled_set": {"presentment_money": nothing, "shop_money": nothing},
        "manual_payment_gateway": transaction.manual,
        "amount_rounding": None,
        "admin_graphql_api_id": f"gid://shopify/OrderTransaction/{transaction.id}",
    }


def fulfilment_body(
    shop: Shop, order: Order, number: int, quantity: int, now: datetime
) -> dict[str, Any]:
    """Describe a parcel as `fulfillments/*` does."""
    return {
        "id": number,
        "order_id": order.id,
        "status": "success",
        "created_at": local(now, shop),
        "service": "manual",
        "updated_at": local(now, shop),
        "tracking_company": None,
        "shipment_status": None,
        "location_id": None,
        "origin_address": None,
        "email": order.customer.email if order.customer else None,
        "destination": address(shop, order.customer) if order.customer else None,
        "tracking_number": None,
        "tracking_numbers": [],
        "tracking_url": None,
        "tracking_urls": [],
        "receipt": {},
        "name": f"{order.name}.{quantity}",
        "admin_graphql_api_id": f"gid://shopify/Fulfillment/{number}",
        "line_items": [_nested_line(order, line) for line in order.lines],
    }


def edit_body(
    shop: Shop, order: Order, number: int, added: list[Line], now: datetime
) -> dict[str, Any]:
    """Describe an edit as `orders/edited` does: what changed, but not the new totals."""
    changed: dict[str, Any] = {
        "additions": [{"id": line.id, "delta": line.quantity} for line in added],
        "removals": [],
    }
    edit: dict[str, Any] = {
        "id": number,
        "app_id": None,
        "created_at": local(now, shop),
        "committed_at": local(now, shop),
        "notify_customer": False,
        "order_id": order.id,
        "staff_note": "",
        "user_id": None,
        "line_items": changed,
        "discounts": {"line_item": {"additions": [], "removals": []}},
        "shipping_lines": {"additions": [], "removals": []},
    }
    return {"order_edit": edit}
