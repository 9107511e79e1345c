"""Bodies of `orders/create` in the documented shape, 10.7 KB each, and their signed requests."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

SHOP = "bench.myshopify.com"
SECRET = "bench-client-secret"  # noqa: S105 - of a shop that exists only while the bench runs
BODY_BYTES = 10_700
FIRST_ID = 820_982_911_000_000_000
"""As long as the platform's ids are: more than a float can hold."""

NUMBER = 918_273_645_546_372_819
"""Stands in the template where an order's id belongs; every id has as many digits."""

UPDATED_AT = "2001-02-03T04:05:06-05:00"
BEGAN = datetime(2026, 1, 5, tzinfo=UTC)


def money(amount: str) -> dict[str, Any]:
    """Write an amount in the shop's and the buyer's currency."""
    both = {"amount": amount, "currency_code": "USD"}
    return {"shop_money": both, "presentment_money": both}


def address() -> dict[str, Any]:
    """Write an address of nobody."""
    return {
        "first_name": "Ada",
        "last_name": "Example",
        "name": "Ada Example",
        "company": "Example Works",
        "address1": "12 Sample Street",
        "address2": None,
        "phone": "+15550100",
        "city": "Sampleton",
        "zip": "01234",
        "province": "Ontario",
        "province_code": "ON",
        "country": "Canada",
        "country_code": "CA",
        "latitude": None,
        "longitude": None,
    }


def customer() -> dict[str, Any]:
    """Write a buyer who does not exist."""
    return {
        "id": 115_310_627_314_723_954,
        "created_at": None,
        "updated_at": None,
        "first_name": "Ada",
        "last_name": "Example",
        "state": "disabled",
        "note": None,
        "verified_email": True,
        "multipass_identifier": None,
        "tax_exempt": False,
        "email": "ada@example.com",
        "phone": None,
        "currency": "USD",
        "tax_exemptions": [],
        "admin_graphql_api_id": "gid://shopify/Customer/115310627314723954",
        "default_address": {"id": 715_243_470_612_851_245, **address(), "default": True},
    }


def line(number: int) -> dict[str, Any]:
    """Write one line of an order."""
    return {
        "id": 866_550_311_766_439_000 + number,
        "admin_graphql_api_id": f"gid://shopify/LineItem/{866_550_311_766_439_000 + number}",
        "attributed_staffs": [{"id": "gid://shopify/StaffMember/902541635", "quantity": 1}],
        "current_quantity": 1,
        "fulfillable_quantity": 1,
        "fulfillment_service": "manual",
        "fulfillment_status": None,
        "gift_card": False,
        "grams": 567,
        "name": "A lamp of brass",
        "price": "199.00",
        "price_set": money("199.00"),
        "product_exists": True,
        "product_id": 632_910_392,
        "properties": [],
        "quantity": 1,
        "requires_shipping": True,
        "sales_line_item_group_id": None,
        "sku": f"LAMP-{number:04}",
        "taxable": True,
        "title": "A lamp of brass",
        "total_discount": "0.00",
        "total_discount_set": money("0.00"),
        "variant_id": 808_950_810,
        "variant_inventory_management": "shopify",
        "variant_title": None,
        "vendor": None,
        "tax_lines": [],
        "duties": [],
        "discount_allocations": [],
    }


def shipping() -> dict[str, Any]:
    """Write how an order is sent."""
    return {
        "id": 271_878_346_596_884_015,
        "carrier_identifier": None,
        "code": None,
        "current_discounted_price_set": money("10.00"),
        "discounted_price": "10.00",
        "discounted_price_set": money("10.00"),
        "is_removed": False,
        "phone": None,
        "price": "10.00",
        "price_set": money("10.00"),
        "requested_fulfillment_service_id": None,
        "source": "shopify",
        "title": "Standard post",
        "tax_lines": [],
        "discount_allocations": [],
    }


def sums() -> dict[str, Any]:
    """Write the sums of an order, each twice as the platform does."""
    plain = {
        "current_subtotal_price": "398.00",
        "current_total_discounts": "0.00",
        "current_total_price": "408.00",
        "current_total_tax": "0.00",
        "subtotal_price": "398.00",
        "total_discounts": "0.00",
        "total_line_items_price": "398.00",
        "total_price": "408.00",
        "total_tax": "0.00",
    }
    sets = {f"{name}_set": money(amount) for name, amount in plain.items()}
    more = {
        "current_shipping_price_set": money("10.00"),
        "total_cash_rounding_payment_adjustment_set": money("0.00"),
        "total_cash_rounding_refund_adjustment_set": money("0.00"),
        "total_shipping_price_set": money("10.00"),
        "total_outstanding": "408.00",
        "total_tip_received": "0.00",
        "total_weight": 1134,
    }
    return {**plain, **sets, **more}


NOTHING = [
    "app_id",
    "browser_ip",
    "cart_token",
    "checkout_token",
    "client_details",
    "closed_at",
    "cancelled_at",
    "cancel_reason",
    "confirmation_number",
    "current_total_additional_fees_set",
    "current_total_duties_set",
    "device_id",
    "fulfillment_status",
    "landing_site",
    "landing_site_ref",
    "location_id",
    "merchant_of_record_app_id",
    "note",
    "original_total_additional_fees_set",
    "original_total_duties_set",
    "phone",
    "po_number",
    "reference",
    "referring_site",
    "source_identifier",
    "source_url",
    "user_id",
    "payment_terms",
]


def order() -> dict[str, Any]:
    """Write an order with every documented field."""
    return {
        **dict.fromkeys(NOTHING),
        **sums(),
        "id": NUMBER,
        "admin_graphql_api_id": f"gid://shopify/Order/{NUMBER}",
        "name": f"#{NUMBER}",
        "number": 234,
        "order_number": 1234,
        "buyer_accepts_marketing": True,
        "confirmed": True,
        "contact_email": "ada@example.com",
        "created_at": UPDATED_AT,
        "processed_at": UPDATED_AT,
        "updated_at": UPDATED_AT,
        "currency": "USD",
        "presentment_currency": "USD",
        "customer_locale": "en",
        "duties_included": False,
        "email": "ada@example.com",
        "estimated_taxes": False,
        "financial_status": "paid",
        "merchant_business_entity_id": "MTU0ODM4MDAwOQ",
        "order_status_url": f"https://example.com/548380009/orders/{NUMBER}/authenticate",
        "payment_gateway_names": ["visa", "bogus"],
        "source_name": "web",
        "tags": "",
        "tax_exempt": False,
        "taxes_included": False,
        "test": False,
        "token": "123456abcd",
        "billing_address": address(),
        "shipping_address": address(),
        "customer": customer(),
        "line_items": [line(1), line(2)],
        "shipping_lines": [shipping()],
        **{
            name: []
            for name in [
                "discount_applications",
                "discount_codes",
                "fulfillments",
                "line_item_groups",
                "note_attributes",
                "refunds",
                "returns",
                "tax_lines",
            ]
        },
    }


def template() -> bytes:
    """Give the body of the order that has no number yet."""
    body = order()
    bare = len(orjson.dumps({**body, "note": ""}))
    return orjson.dumps({**body, "note": "." * max(0, BODY_BYTES - bare)})


def requests(path: str, first: int, count: int) -> Iterator[bytes]:
    """Make signed requests, each an order of its own under a delivery id of its own."""
    pattern, key, stand_in = template(), SECRET.encode(), str(NUMBER).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"X-Shopify-Topic: orders/create\r\nX-Shopify-Shop-Domain: {SHOP}\r\n"
        "X-Shopify-API-Version: 2026-07\r\nX-Shopify-Webhook-Id: bench-%d\r\n"
        "X-Shopify-Event-Id: event-%d\r\nX-Shopify-Triggered-At: %s\r\n"
        "X-Shopify-Hmac-Sha256: %s\r\nContent-Length: %d\r\n\r\n"
    )
    for number in range(first, first + count):
        body = pattern.replace(stand_in, str(FIRST_ID + number).encode())
        at = (BEGAN + timedelta(seconds=number)).isoformat()
        body = body.replace(UPDATED_AT.encode(), at.encode())
        signature = base64.b64encode(hmac.digest(key, body, hashlib.sha256)).decode()
        yield (head % (number, number, at, signature, len(body))).encode() + body
