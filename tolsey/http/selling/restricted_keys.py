"""The key of a seller's account at the payment processor: what is pasted, and whether it can be read with.

The checks at submission, in order, each with its own code (rules/revenue#checks).
The key is kept by nobody here.
"""

import re
from typing import Annotated, Final
from urllib.parse import urlencode

from pydantic import Field, StringConstraints

from tolsey.actors.listing.verification.accounts import (
    AccountUnreachable,
    KeyRefused,
    ReadDenied,
    SellerAccount,
)
from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import service

RETRY_SECONDS: Final = 30
RESTRICTED: Final = re.compile(r"rk_live_[A-Za-z0-9_]{4,247}")
WISHED: Final = ("rak_coupon_read", "rak_plan_read", "rak_dispute_read")
"""Not needed: without them what is discounted, tiered or disputed may count for nothing."""
CREATE_KEY_URL: Final = "https://dashboard.stripe.com/apikeys/create?" + urlencode(
    {
        "name": "Revenue verification",
        "permissions[]": (
            "rak_charge_read",
            "rak_subscription_read",
            "rak_accounts_kyc_basic_read",
            *WISHED,
        ),
    },
    doseq=True,
)
"""Where a seller makes a restricted key that may read what is asked and change nothing."""

REFUSED_KINDS: Final = {
    ("rk_test_", "sk_test_"): (
        "test_mode_key",
        (
            "This is a test mode key, which can't verify revenue. Create a restricted key in live"
            " mode."
        ),
    ),
    ("sk_live_",): (
        "secret_key_refused",
        (
            "This is a secret key, which has full access to the account. Create a restricted key"
            " with read permissions only."
        ),
    ),
    ("pk_",): (
        "publishable_key",
        "This is a publishable key, which can't read revenue. Create a restricted key.",
    ),
}


class PaymentsKey(ApiModel):
    """A restricted key of the seller's account at the payment processor."""

    restricted_key: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=255),
        Field(repr=False),
    ]


class SellerAccountUnreachable(Refusal):
    """The payment processor gave no usable answer."""

    status = 502
    code = "processor_unreachable"


async def opened_account(key: str) -> SellerAccount:
    """Read the account that a key opens: 422 with the reason when it is not to be read with.

    For a route to call before it asks an actor, because the processor may take its time.
    """
    check_kind(key)
    accounts = service().seller_accounts
    try:
        account = await accounts.account(key)
        if not account.is_live:
            raise Unprocessable(
                "This Stripe account can't accept payments yet. Activate it in the Stripe"
                " Dashboard.",
                code="account_not_live",
            )
        await accounts.probe(key)
    except ReadDenied as denied:
        raise Unprocessable(
            denied.message,
            code=f"missing_permission:{denied.read}",
            permission=denied.permission,
            createKeyUrl=CREATE_KEY_URL,
        ) from None
    except KeyRefused as refused:
        raise Unprocessable(
            refused.message, code="processor_rejected", processorCode=refused.code
        ) from None
    except AccountUnreachable as error:
        raise SellerAccountUnreachable(
            "Stripe is unreachable, so nothing was saved. Try again in a minute.",
            retryAfter=RETRY_SECONDS,
        ) from error
    return account


def check_kind(key: str) -> None:
    """Refuse whatever is not a restricted key of the live mode, before anyone else sees it."""
    for prefixes, (code, why) in REFUSED_KINDS.items():
        if key.startswith(prefixes):
            raise Unprocessable(why, code=code, createKeyUrl=CREATE_KEY_URL)
    if not RESTRICTED.fullmatch(key):
        raise Unprocessable(
            "This isn't a Stripe API key. Create a restricted key, which starts with rk_live_.",
            code="not_a_restricted_key",
            createKeyUrl=CREATE_KEY_URL,
        )


def ending(key: str) -> str:
    """Give what a seller recognises the key by, and nobody else can use."""
    return f"rk_live_...{key[-4:]}"
