"""Events as the payment processor writes them, in its newest shape unless they say old."""

from itertools import count
from typing import Any

ORDINALS = count(1)
NEW, OLD = "2026-10-28.endive", "2020-08-27"
START, END = 1_793_600_000, 1_796_192_000
ORGANIZATION = "org_1"
OURS = {"org_id": ORGANIZATION}
CREDITS = {**OURS, "kind": "credits", "credits_cents": "5000"}


def event(type_: str, about: dict[str, Any], **outside: Any) -> dict[str, Any]:
    return {
        "id": f"evt_{next(ORDINALS)}",
        "object": "event",
        "api_version": NEW,
        "created": START,
        "livemode": False,
        "type": type_,
        "data": {"object": about},
        **outside,
    }


def checkout(**fields: Any) -> dict[str, Any]:
    """Make a paid purchase of 50 USD of credits, 60 with tax."""
    return {
        "id": "cs_1",
        "object": "checkout.session",
        "mode": "payment",
        "payment_status": "paid",
        "customer": "cus_1",
        "subscription": None,
        "payment_intent": "pi_1",
        "invoice": None,
        "currency": "usd",
        "amount_subtotal": 5000,
        "amount_total": 6000,
        "metadata": CREDITS,
        **fields,
    }


def payment(**fields: Any) -> dict[str, Any]:
    return {
        "id": "pi_1",
        "object": "payment_intent",
        "status": "succeeded",
        "customer": "cus_1",
        "latest_charge": "ch_1",
        "currency": "usd",
        "amount": 6000,
        "amount_received": 6000,
        "metadata": CREDITS,
        **fields,
    }


def line(**fields: Any) -> dict[str, Any]:
    details = {"subscription": "sub_1", "proration": False}
    return {
        "amount": 7900,
        "period": {"start": START, "end": END},
        "parent": {
            "type": "subscription_item_details",
            "subscription_item_details": details,
            "invoice_item_details": None,
        },
        "pricing": {"price_details": {"price": "price_pro"}},
        **fields,
    }


def old_line(**fields: Any) -> dict[str, Any]:
    return {
        "amount": 7900,
        "period": {"start": START, "end": END},
        "price": {"id": "price_pro"},
        "proration": False,
        "subscription": "sub_1",
        "metadata": OURS,
        **fields,
    }


def invoice(*lines: dict[str, Any], **fields: Any) -> dict[str, Any]:
    details = {"subscription": "sub_1", "metadata": OURS}
    return {
        "id": "in_1",
        "object": "invoice",
        "created": START,
        "status": "paid",
        "billing_reason": "subscription_create",
        "customer": "cus_1",
        "currency": "usd",
        "total": 8690,
        "total_excluding_tax": 7900,
        "amount_paid": 8690,
        "amount_remaining": 0,
        "attempt_count": 1,
        "next_payment_attempt": None,
        "hosted_invoice_url": "https://invoice.example/1",
        "parent": {"type": "subscription_details", "subscription_details": details},
        "lines": {"data": list(lines or (line(),)), "has_more": False},
        "metadata": {},
        **fields,
    }


def old_invoice(*lines: dict[str, Any], **fields: Any) -> dict[str, Any]:
    new = invoice(*(lines or (old_line(),)), subscription="sub_1", tax=790)
    for moved in ("parent", "total_excluding_tax"):
        del new[moved]
    return {**new, "payment_intent": "pi_1", "charge": "ch_1", **fields}


def subscription(**fields: Any) -> dict[str, Any]:
    item = {
        "id": "si_1",
        "price": {"id": "price_pro"},
        "quantity": 1,
        "current_period_start": START,
        "current_period_end": END,
    }
    return {
        "id": "sub_1",
        "object": "subscription",
        "status": "active",
        "customer": "cus_1",
        "cancel_at_period_end": False,
        "items": {"data": [item], "has_more": False},
        "latest_invoice": "in_1",
        "pending_update": None,
        "metadata": OURS,
        **fields,
    }


def charge(**fields: Any) -> dict[str, Any]:
    return {
        "id": "ch_1",
        "object": "charge",
        "payment_intent": "pi_1",
        "customer": "cus_1",
        "currency": "usd",
        "amount": 6000,
        "amount_refunded": 3000,
        "disputed": False,
        "billing_details": {"name": "Jenny Rosen", "email": "jenny@example.com"},
        "payment_method_details": {"card": {"last4": "4242", "fingerprint": "AOB934RVNwzk6xtn"}},
        "receipt_email": "jenny@example.com",
        "metadata": CREDITS,
        **fields,
    }


def dispute(**fields: Any) -> dict[str, Any]:
    return {
        "id": "dp_1",
        "object": "dispute",
        "charge": "ch_1",
        "payment_intent": "pi_1",
        "currency": "usd",
        "amount": 6000,
        "status": "needs_response",
        "reason": "fraudulent",
        "evidence": {"customer_name": "Jenny Rosen", "customer_purchase_ip": "192.0.2.7"},
        **fields,
    }


def account(**fields: Any) -> dict[str, Any]:
    requirements = {
        "disabled_reason": None,
        "currently_due": [],
        "past_due": [],
        "eventually_due": ["individual.verification.document"],
        "pending_verification": [],
    }
    return {
        "id": "acct_1",
        "object": "account",
        "details_submitted": True,
        "charges_enabled": False,
        "payouts_enabled": True,
        "requirements": requirements,
        "metadata": {"user_id": "usr_1"},
        **fields,
    }


def payout(**fields: Any) -> dict[str, Any]:
    return {
        "id": "po_1",
        "object": "payout",
        "amount": 25_000,
        "currency": "usd",
        "status": "failed",
        "failure_code": "account_closed",
        "failure_message": "The bank account has been closed.",
        "metadata": {"withdrawal_id": "wd_1"},
        **fields,
    }
