"""A seller's account at the payment processor, with payments and subscriptions of their customers."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.face.faults import Fault
from tolsey.sandbox.payments.processor import Processor

RESTRICTED_KEY = "rk_live_51CornerSecretabcd"
ACCOUNT = "acct_1Corner"
READS = ("accounts_kyc_basic_read", "charge_read", "subscription_read")
DAY = timedelta(days=1)


@dataclass
class Account:
    """The account and its restricted key, as a seller's customers fill it."""

    processor: Processor
    id: str = ACCOUNT
    key: str = RESTRICTED_KEY
    merchant: Merchant = field(init=False)

    def __post_init__(self) -> None:
        self.merchant = self.processor.add_merchant(self.id)
        self.allow(*READS)

    def allow(self, *permissions: str) -> None:
        self.processor.add_key(self.merchant, self.key, *permissions)

    def at(self, days_ago: float) -> int:
        return int((self.processor.clock.now() - days_ago * DAY).timestamp())

    def pay(self, customer: str, cents: int, days_ago: float = 5, **changed: Any) -> dict[str, Any]:
        card = {"brand": "visa", "last4": "4242", "fingerprint": f"print_{customer}"}
        given: dict[str, Any] = {
            "created": self.at(days_ago),
            "livemode": True,
            "amount": cents,
            "amount_captured": cents,
            "amount_refunded": 0,
            "billing_details": {"email": f"{customer}@example.com", "name": "Eve Smith"},
            "captured": True,
            "currency": "usd",
            "customer": customer,
            "disputed": False,
            "metadata": {},
            "paid": True,
            "payment_method_details": {"type": "card", "card": card},
            "receipt_email": f"{customer}@example.com",
            "refunded": False,
            "status": "succeeded",
        }
        return self.merchant.new("charge", "ch", **{**given, **changed})

    def subscribe(self, customer: str, *prices: dict[str, Any], **changed: Any) -> dict[str, Any]:
        items = [self._item(price) for price in prices or (price_of(),)]
        given: dict[str, Any] = {
            "livemode": True,
            "cancel_at_period_end": False,
            "currency": "usd",
            "customer": customer,
            "discounts": [],
            "default_tax_rates": [],
            "items": {"object": "list", "data": items, "has_more": False, "url": "/v1/items"},
            "start_date": self.at(100),
            "status": "active",
        }
        return self.merchant.new("subscription", "sub", **{**given, **changed})

    def _item(self, price: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.merchant.books.new_id("si"),
            "object": "subscription_item",
            "current_period_start": self.at(5),
            "current_period_end": self.at(-25),
            "discounts": [],
            "price": {"id": self.merchant.books.new_id("price"), "created": self.at(200), **price},
            "quantity": 1,
            "tax_rates": [],
        }

    def answer_next(self, path: str, body: Any, status: int = 200) -> None:
        """Let the next request to a path be answered by hand."""
        headers = ((b"content-type", b"application/json"),)
        fault = Fault("answer", path, status, orjson.dumps(body), headers)
        self.processor.faults.waiting.append(fault)

    def own(self, **changed: Any) -> dict[str, Any]:
        """The account as the processor shows it."""
        return {
            "id": self.id,
            "object": "account",
            "business_profile": {"url": "https://www.corner.example"},
            "charges_enabled": True,
            "default_currency": "usd",
            "details_submitted": True,
            **changed,
        }


def price_of(cents: int | None = 1_000, interval: str = "month", **changed: Any) -> dict[str, Any]:
    return {
        "object": "price",
        "billing_scheme": "per_unit",
        "currency": "usd",
        "recurring": {"interval": interval, "interval_count": 1, "usage_type": "licensed"},
        "tax_behavior": "exclusive",
        "unit_amount": cents,
        **changed,
    }
