"""The processor's subscriptions, charges and accounts read into our values (processor's API reference).

What says who a customer is is not read: of a card there is a hash under a key that the caller makes
for one sync, of a customer the id.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from tolsey.actors.listing.verification.accounts import SellerAccount
from tolsey.storage.records.selling.revenue import (
    PulledCharge,
    PulledDiscount,
    PulledItem,
    PulledPrice,
    PulledSubscription,
    Tier,
)

Body = Mapping[str, Any]
UNKNOWN = ""
"""The duration of a discount whose terms were not shown."""


def moment(seconds: int | None) -> datetime | None:
    """Read a moment in Unix seconds."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def account(body: Body) -> SellerAccount:
    """Read an account; its domain is the host of the address of the business."""
    address = str((body.get("business_profile") or {}).get("url") or "")
    host = urlsplit(address if "//" in address else f"//{address}").hostname
    return SellerAccount(
        account_id=body["id"],
        currency=(body.get("default_currency") or "usd").upper(),
        is_live=bool(body.get("charges_enabled") and body.get("details_submitted")),
        domain=host or None,
    )


def subscription(body: Body) -> PulledSubscription:
    """Read a subscription; what its items do not show of tiers and discounts is unknown."""
    items = body["items"]["data"]
    starts = [each["current_period_start"] for each in items if "current_period_start" in each]
    rates = body.get("default_tax_rates") or ()
    currency = body["currency"].upper()
    return PulledSubscription(
        subscription_id=body["id"],
        status=body["status"],
        currency=currency,
        customer=named(body["customer"]),
        items=tuple(item(each, rates, currency) for each in items),
        discounts=discounts(body.get("discounts"), currency),
        trial_end=moment(body.get("trial_end")),
        collection_paused=body.get("pause_collection") is not None,
        cancels_at_period_end=bool(body.get("cancel_at_period_end") or body.get("cancel_at")),
        started_at=moment(body.get("start_date")),
        period_start=moment(min(starts, default=None)),
        past_due_since=moment(body.get("past_due_since")),
    )


def item(body: Body, rates_of_all: Iterable[Body], currency: str) -> PulledItem:
    """Read an item of a subscription in `currency`; its own tax rates stand before those of the whole subscription."""
    rates = [rate for rate in body.get("tax_rates") or rates_of_all if rate.get("inclusive")]
    percents = [rate.get("effective_percentage") or rate["percentage"] for rate in rates]
    quantity = body.get("quantity")
    return PulledItem(
        price=price(body["price"], currency),
        quantity=1 if quantity is None else quantity,
        discounts=discounts(body.get("discounts"), currency),
        inclusive_tax_percent=sum(map(decimal, percents), Decimal(0)) if percents else None,
    )


def price(body: Body, currency: str) -> PulledPrice:
    """Read a recurring price; one that names no currency is in the subscription's."""
    recurring, packs = body["recurring"], body.get("transform_quantity") or {}
    tiered, tiers = body.get("billing_scheme") == "tiered", body.get("tiers")
    return PulledPrice(
        currency=(body.get("currency") or currency).upper(),
        interval=recurring["interval"],
        interval_count=recurring.get("interval_count") or 1,
        metered=recurring.get("usage_type") == "metered",
        unit_amount=amount(body, "unit_amount"),
        tiers_mode=(body.get("tiers_mode") or "graduated") if tiered else None,
        tiers=tuple(map(tier, tiers)) if tiers else None,
        divide_by=packs.get("divide_by"),
        round_up=packs.get("round") == "up",
        tax_inclusive=body.get("tax_behavior") == "inclusive",
        created_at=moment(body.get("created")),
    )


def tier(body: Body) -> Tier:
    """Read one step of a price."""
    unit, flat = amount(body, "unit_amount"), amount(body, "flat_amount")
    return Tier(body.get("up_to"), unit or Decimal(0), flat or Decimal(0))


def amount(body: Body, name: str) -> Decimal | None:
    """Read an amount of minor units, with its fractions if it has any."""
    exact = body.get(f"{name}_decimal")
    found = body.get(name) if exact is None else exact
    return None if found is None else decimal(found)


def decimal(number: Any) -> Decimal:
    """Read a number as it is written."""
    return Decimal(str(number))


def discounts(bodies: Iterable[Any] | None, currency: str) -> tuple[PulledDiscount, ...]:
    """Read discounts, in the order in which they come off."""
    return tuple(discount(body, currency) for body in bodies or ())


def discount(body: Any, currency: str) -> PulledDiscount:
    """Read a discount of a subscription in `currency`.

    One that is only named has unknown terms, and so has an amount in another currency.
    """
    if not isinstance(body, Mapping):
        return PulledDiscount(duration=UNKNOWN, start=None, end=None)
    coupon = body.get("coupon") or (body.get("source") or {}).get("coupon")
    start, end = moment(body.get("start")), moment(body.get("end"))
    if not isinstance(coupon, Mapping):
        return PulledDiscount(duration=UNKNOWN, start=start, end=end)
    percent, off = coupon.get("percent_off"), coupon.get("amount_off")
    if (coupon.get("currency") or currency).upper() != currency:
        off = None
    return PulledDiscount(
        duration=coupon["duration"],
        start=start,
        end=end,
        percent_off=None if percent is None else decimal(percent),
        amount_off=None if off is None else decimal(off),
    )


def charge(body: Body, hash_key: bytes, dispute: str | None) -> PulledCharge:
    """Read a payment; `dispute` is the state of its dispute, if it has one."""
    captured, sent_on = body["amount_captured"], body.get("transfer_data")
    transferred = 0
    if sent_on:
        kept = body.get("application_fee_amount") or 0
        transferred = captured - kept if sent_on.get("amount") is None else sent_on["amount"]
    customer = body.get("customer")
    card = ((body.get("payment_method_details") or {}).get("card") or {}).get("fingerprint")
    return PulledCharge(
        charge_id=body["id"],
        created_at=datetime.fromtimestamp(body["created"], UTC),
        currency=body["currency"].upper(),
        succeeded=body["status"] == "succeeded",
        live=body["livemode"],
        captured=captured,
        refunded=body["amount_refunded"],
        transferred=transferred,
        dispute=dispute,
        customer=None if customer is None else named(customer),
        card=None if card is None else hashed(card, hash_key),
    )


def hashed(fingerprint: str, hash_key: bytes) -> str:
    """Hide a card behind a hash that means nothing without the key of this sync."""
    return hmac.new(hash_key, fingerprint.encode(), hashlib.sha256).hexdigest()


def named(reference: Any) -> str:
    """Give the id of an object that is named or shown whole."""
    return str(reference["id"] if isinstance(reference, Mapping) else reference)


def is_whole(body: Body) -> bool:
    """Whether a subscription's items show all there is to know of tiers and discounts."""
    items = body["items"]
    if items.get("has_more"):
        return False
    prices_shown = all(
        each["price"].get("billing_scheme") != "tiered" or each["price"].get("tiers")
        for each in items["data"]
    )
    currency = body["currency"].upper()
    terms = (
        found for each in items["data"] for found in discounts(each.get("discounts"), currency)
    )
    return prices_shown and all(found.duration != UNKNOWN for found in terms)
