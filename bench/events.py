"""Bodies of `invoice.paid` in the documented shape, 4.8 KB each, and their signed requests."""

import hashlib
import hmac
import time
from collections.abc import Iterator
from typing import Any

import orjson

SECRET = "whsec_bench"  # noqa: S105 - of an endpoint that exists only while the bench runs
ORGANIZATION = "org_bench"
BODY_BYTES = 4_800
NUMBER = 918_273_645_546
"""Stands in the template where an event's own ids belong; every number has as many digits."""
FIRST = 100_000_000_000
STARTS, ENDS = 1_793_600_000, 1_796_192_000


def line() -> dict[str, Any]:
    """Write one line of an invoice."""
    return {
        "id": f"il_{NUMBER}",
        "object": "line_item",
        "amount": 7900,
        "subtotal": 7900,
        "currency": "usd",
        "description": "1 x Pro (at $79.00 / month)",
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": f"in_{NUMBER}",
        "livemode": False,
        "metadata": {},
        "period": {"start": STARTS, "end": ENDS},
        "quantity": 1,
        "taxes": None,
        "parent": {
            "type": "subscription_item_details",
            "invoice_item_details": None,
            "subscription_item_details": {
                "invoice_item": None,
                "proration": False,
                "proration_details": {"credited_items": None},
                "subscription": f"sub_{NUMBER}",
                "subscription_item": f"si_{NUMBER}",
            },
        },
        "pricing": {
            "type": "price_details",
            "price_details": {"price": "price_pro", "product": "prod_pro"},
            "unit_amount_decimal": "7900",
        },
    }


def invoice() -> dict[str, Any]:
    """Write a paid invoice of a subscription."""
    return {
        "id": f"in_{NUMBER}",
        "object": "invoice",
        "status": "paid",
        "billing_reason": "subscription_cycle",
        "collection_method": "charge_automatically",
        "customer": f"cus_{NUMBER}",
        "customer_email": "ada@example.com",
        "customer_name": "Ada Example",
        "currency": "usd",
        "created": STARTS,
        "amount_due": 7900,
        "amount_paid": 7900,
        "amount_remaining": 0,
        "attempt_count": 1,
        "attempted": True,
        "subtotal": 7900,
        "subtotal_excluding_tax": 7900,
        "total": 7900,
        "total_excluding_tax": 7900,
        "total_taxes": [],
        "hosted_invoice_url": f"https://invoice.example/i/{NUMBER}",
        "invoice_pdf": f"https://invoice.example/i/{NUMBER}/pdf",
        "next_payment_attempt": None,
        "status_transitions": {"finalized_at": STARTS, "paid_at": STARTS},
        "parent": {
            "type": "subscription_details",
            "quote_details": None,
            "subscription_details": {
                "metadata": {"org_id": ORGANIZATION},
                "subscription": f"sub_{NUMBER}",
            },
        },
        "lines": {"object": "list", "data": [line()], "has_more": False},
        "metadata": {},
    }


def event() -> dict[str, Any]:
    """Write the event that tells of it."""
    return {
        "id": f"evt_{NUMBER}",
        "object": "event",
        "api_version": "2026-10-28.endive",
        "created": STARTS,
        "data": {"object": invoice()},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": "invoice.paid",
    }


def template() -> bytes:
    """Give the body of the event that has no number yet."""
    body = event()
    about = body["data"]["object"]
    bare = len(orjson.dumps({**body, "data": {"object": {**about, "footer": ""}}}))
    about["footer"] = "." * max(0, BODY_BYTES - bare)
    return orjson.dumps(body)


def requests(path: str, first: int, count: int) -> Iterator[bytes]:
    """Make signed requests, each an event of its own about an invoice of its own."""
    pattern, key, stand_in = template(), SECRET.encode(), str(NUMBER).encode()
    head = (
        b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Stripe-Signature: t=%d,v1=%b\r\nContent-Length: %d\r\n\r\n"
    )
    for number in range(first, first + count):
        body = pattern.replace(stand_in, str(FIRST + number).encode())
        at = int(time.time())
        digest = hmac.digest(key, b"%d.%b" % (at, body), hashlib.sha256).hex().encode()
        yield head % (path.encode(), at, digest, len(body)) + body
