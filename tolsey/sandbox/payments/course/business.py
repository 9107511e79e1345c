"""A seller's own business at the processor: customers who have paid it for a while."""

from datetime import timedelta
from typing import Final

from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.course.accounts import Accounts

READS: Final = ("accounts_kyc_basic_read", "charge_read", "subscription_read")
"""What a restricted key must be allowed for a business to be read with it."""
CUSTOMERS, DAYS = 12, 75
CENTS, CENTS_MORE = 2_400, 350


def open_business(accounts: Accounts) -> Merchant:
    """Open an account with a payment on each of its days."""
    merchant = accounts.add_merchant(accounts.platform.books.new_id("acct", 16))
    customers = [merchant.books.new_id("cus") for _ in range(CUSTOMERS)]
    for days_ago in range(DAYS, 0, -1):
        cents = CENTS + CENTS_MORE * (days_ago % 7)
        _pay(merchant, customers[days_ago % CUSTOMERS], cents, _at(merchant, days_ago))
    return merchant


def _at(merchant: Merchant, days_ago: int) -> int:
    return int((merchant.clock.now() - timedelta(days=days_ago)).timestamp())


def _pay(merchant: Merchant, customer: str, cents: int, at: int) -> None:
    card = {"brand": "visa", "last4": "4242", "fingerprint": f"print_{customer}"}
    merchant.new(
        "charge",
        "ch",
        created=at,
        livemode=True,
        amount=cents,
        amount_captured=cents,
        amount_refunded=0,
        billing_details={"email": None, "name": None},
        captured=True,
        currency="usd",
        customer=customer,
        disputed=False,
        metadata={},
        paid=True,
        payment_method_details={"type": "card", "card": card},
        refunded=False,
        status="succeeded",
    )
