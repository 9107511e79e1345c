"""Definition rv2 for a payment processor: what a subscription is worth a month.

Rules 1 to 7 (rules/revenue#subscriptions). Amounts are fractions of minor units, so
that nothing is rounded before the sum of a currency is, once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from tolsey.storage.records.selling.revenue import (
    PulledDiscount,
    PulledItem,
    PulledPrice,
    PulledSubscription,
    Tier,
)

PER_MONTH: Final[Mapping[str, Fraction]] = {
    "day": Fraction(365, 12),
    "week": Fraction(52, 12),
    "month": Fraction(1),
    "year": Fraction(1, 12),
}
LONGEST: Final[Mapping[str, timedelta]] = {
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "year": timedelta(days=366),
}
PAYMENT_GRACE: Final = timedelta(days=35)
"""A customer who paid nothing for an interval and this long pays nothing."""
LATE: Final = timedelta(days=30)
REPRICED_WITHIN: Final = timedelta(days=14)
ZERO: Final = Fraction(0)

TIERS_UNREADABLE: Final = "tiers_unreadable"
PRICE_UNREADABLE: Final = "price_unreadable"
PRICE_CURRENCY_UNREADABLE: Final = "price_currency_unreadable"
DISCOUNT_UNREADABLE: Final = "discount_unreadable"
TAX_UNKNOWN: Final = "tax_rate_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a subscription is worth a month, and how much of it is on prices new to old customers.

    What could not be read is worth nothing, and said among the flags.
    """

    amount: Fraction = ZERO
    repriced: Fraction = ZERO
    metered_items: int = 0
    flags: frozenset[str] = field(default_factory=frozenset)


def idle(subscription: PulledSubscription, now: datetime) -> str | None:
    """Name the first reason why a subscription does not count, whoever paid; or None."""
    trial_end = subscription.trial_end
    if subscription.status not in {"active", "past_due"}:
        return subscription.status
    if subscription.collection_paused:
        return "collection_paused"
    if trial_end is not None and trial_end > now:
        return "trialing"
    return None


def unpaid(
    subscription: PulledSubscription, paid_at: Mapping[str, datetime], now: datetime
) -> str | None:
    """Name why a subscription that is not idle earns nothing, or None.

    `paid_at` has the last good payment of each customer.
    """
    last = paid_at.get(subscription.customer)
    if last is None or now - last > interval_of(subscription) + PAYMENT_GRACE:
        return "never_paid"
    if subscription.status == "past_due" and now - late_since(subscription, last) > LATE:
        return "past_due"
    return None


def unreadable(subscription: PulledSubscription) -> str | None:
    """Return the reason why a subscription that is paid cannot be valued, or None."""
    # A price's amount is in its own currency. The amount in the subscription's currency isn't read,
    # so the whole subscription is excluded (rules/revenue#subscriptions).
    licensed = (item.price for item in subscription.items if not item.price.metered)
    if any(price.currency != subscription.currency for price in licensed):
        return PRICE_CURRENCY_UNREADABLE
    return None


def interval_of(subscription: PulledSubscription) -> timedelta:
    """Say how far apart its payments may be."""
    prices = [item.price for item in subscription.items if item.price.interval in LONGEST]
    spans = (LONGEST[price.interval] * price.interval_count for price in prices)
    return max(spans, default=LONGEST["month"])


def late_since(subscription: PulledSubscription, paid_at: datetime) -> datetime:
    """Say when the payment that is missing was due.

    The processor does not tell, and begins new periods while an old one is unpaid: it is the end of
    what was last paid for, if that came before the present period.
    """
    if subscription.past_due_since is not None:
        return subscription.past_due_since
    paid_until = paid_at + interval_of(subscription)
    return min(subscription.period_start or paid_until, paid_until)


def worth(subscription: PulledSubscription, now: datetime) -> Worth:
    """Say what a subscription that counts is worth a month."""
    licensed = [item for item in subscription.items if not item.price.metered]
    metered = len(subscription.items) - len(licensed)
    flags = set[str]()
    amounts = [_monthly(item, now, flags) for item in licensed]
    gross = sum(amounts, ZERO)
    # An amount comes off every invoice; the item that is billed most often makes the invoices.
    often = max((_per_month(item.price) for item in licensed), default=ZERO)
    after = _discounted(gross, subscription.discounts, often, now, flags)
    if gross <= 0 or after <= 0:
        return Worth(metered_items=metered, flags=frozenset(flags))
    net = [
        _without_tax(amount * after / gross, item, flags)
        for amount, item in zip(amounts, licensed, strict=True)
    ]
    repriced = sum(
        (amount for amount, item in zip(net, licensed, strict=True) if _is_new(item.price, now)),
        ZERO,
    )
    started_at = subscription.started_at
    if started_at is None or now - started_at < REPRICED_WITHIN:
        repriced = ZERO
    return Worth(
        amount=sum(net, ZERO), repriced=repriced, metered_items=metered, flags=frozenset(flags)
    )


def _monthly(item: PulledItem, now: datetime, flags: set[str]) -> Fraction:
    """Say what an item costs a month after its own discounts."""
    often = _per_month(item.price)
    listed = _listed(item)
    if listed is None or not often:
        flags.add(TIERS_UNREADABLE if item.price.tiers_mode else PRICE_UNREADABLE)
        return ZERO
    return _discounted(listed * often, item.discounts, often, now, flags)


def _per_month(price: PulledPrice) -> Fraction:
    return PER_MONTH.get(price.interval, ZERO) / max(price.interval_count, 1)


def _listed(item: PulledItem) -> Fraction | None:
    """Say what one invoice asks for an item before discounts; None when that cannot be read."""
    price = item.price
    if price.tiers_mode is None:
        return None if price.unit_amount is None else Fraction(price.unit_amount) * _packs(item)
    if not price.tiers:
        return None
    if price.tiers_mode == "volume":
        return _volume(price.tiers, item.quantity)
    return _graduated(price.tiers, item.quantity)


def _packs(item: PulledItem) -> int:
    size = item.price.divide_by
    if not size:
        return item.quantity
    return -(-item.quantity // size) if item.price.round_up else item.quantity // size


def _graduated(tiers: Sequence[Tier], quantity: int) -> Fraction:
    """Let each unit cost what its own tier says."""
    total, below = ZERO, 0
    for tier in tiers:
        if quantity <= below:
            break
        reached = quantity if tier.up_to is None else min(quantity, tier.up_to)
        total += Fraction(tier.unit_amount) * (reached - below) + Fraction(tier.flat_amount)
        below = reached
    return total


def _volume(tiers: Sequence[Tier], quantity: int) -> Fraction:
    """Let every unit cost what the tier of the whole quantity says."""
    held = (tier for tier in tiers if tier.up_to is None or quantity <= tier.up_to)
    tier = next(held, tiers[-1])
    return Fraction(tier.unit_amount) * quantity + Fraction(tier.flat_amount)


def _discounted(
    amount: Fraction,
    discounts: Sequence[PulledDiscount],
    often: Fraction,
    now: datetime,
    flags: set[str],
) -> Fraction:
    """Take off what is in force, in its order, down to nothing; unknown terms leave nothing."""
    for discount in discounts:
        if not _in_force(discount, now):
            continue
        if discount.percent_off is not None:
            amount *= 1 - Fraction(discount.percent_off) / 100
        elif discount.amount_off is not None:
            amount -= Fraction(discount.amount_off) * often
        else:
            flags.add(DISCOUNT_UNREADABLE)
            return ZERO
    return max(ZERO, amount)


def _in_force(discount: PulledDiscount, now: datetime) -> bool:
    has_begun = discount.start is None or discount.start <= now
    goes_on = discount.end is None or discount.end > now
    return discount.duration != "once" and has_begun and goes_on


def _without_tax(amount: Fraction, item: PulledItem, flags: set[str]) -> Fraction:
    percent = item.inclusive_tax_percent
    if percent is not None:
        return amount / (1 + Fraction(percent) / 100)
    if item.price.tax_inclusive:
        flags.add(TAX_UNKNOWN)
    return amount


def _is_new(price: PulledPrice, now: datetime) -> bool:
    return price.created_at is not None and now - price.created_at < REPRICED_WITHIN
