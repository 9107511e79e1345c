"""A seller's own business at the processor: what its customers paid."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.course.accounts import Accounts

READS: Final = ("accounts_kyc_basic_read", "charge_read", "subscription_read")
"""What a restricted key must be allowed for a business to be read with it."""


@dataclass(frozen=True, slots=True)
class Payment:
    """What a customer paid by card, and how much of it was given back; amounts in cents."""

    customer: str
    cents: int
    refunded: int
    at: datetime


def open_business(accounts: Accounts, payments: Iterable[Payment] = ()) -> Merchant:
    """Open an account with the payments it took so far."""
    merchant = accounts.add_merchant(accounts.platform.books.new_id("acct", 16))
    for payment in payments:
        take(merchant, payment)
    return merchant


def take(merchant: Merchant, payment: Payment) -> None:
    """Take a payment of a customer's card."""
    name = payment.customer
    card = {"brand": "visa", "last4": "4242", "fingerprint": f"print_{name}"}
    merchant.new(
        "charge",
        "ch",
        created=int(payment.at.timestamp()),
        livemode=True,
        amount=payment.cents,
        amount_captured=payment.cents,
        amount_refunded=payment.refunded,
        billing_details={"email": None, "name": None},
        captured=True,
        currency="usd",
        customer=f"cus_{name}",
        disputed=False,
        metadata={},
        paid=True,
        payment_method_details={"type": "card", "card": card},
        refunded=payment.refunded == payment.cents,
        status="succeeded",
    )
