"""What a subscription is worth a month: every term of a price and of a discount at its edge."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.actors.listing.payments import DAY, NOW, item, subscription
from tolsey.actors.listing.verification import recurring
from tolsey.actors.listing.verification.recurring import Worth, worth
from tolsey.storage.records.selling.revenue import PulledDiscount, PulledItem, Tier

MICROSECOND = timedelta(microseconds=1)
STEPS = (
    Tier(10, Decimal(100), Decimal(3)),
    Tier(20, Decimal(50), Decimal(250)),
    Tier(30, Decimal(20), Decimal(0)),
)


def monthly(*items: PulledItem, **changed: Any) -> Fraction:
    return worth(subscription("cus_a", *items, **changed), NOW).amount


def percent(off: int, **changed: Any) -> PulledDiscount:
    return PulledDiscount(
        **{"duration": "forever", "start": None, "end": None, "percent_off": Decimal(off)} | changed
    )


def amount(off: int, **changed: Any) -> PulledDiscount:
    return PulledDiscount(
        **{"duration": "forever", "start": None, "end": None, "amount_off": Decimal(off)} | changed
    )


@pytest.mark.parametrize(
    ("interval", "count", "month"),
    [
        ("day", 1, Fraction(1_000 * 365, 12)),
        ("week", 2, Fraction(1_000 * 52, 24)),
        ("month", 3, Fraction(1_000, 3)),
        ("month", 0, Fraction(1_000)),
        ("year", 1, Fraction(1_000, 12)),
    ],
)
def test_a_price_is_brought_to_a_month(interval: str, count: int, month: Fraction) -> None:
    assert monthly(item(interval=interval, interval_count=count)) == month


@pytest.mark.parametrize(
    ("quantity", "round_up", "packs"),
    [(20, False, 2), (21, False, 2), (20, True, 2), (21, True, 3), (9, False, 0)],
)
def test_units_are_sold_in_packs(quantity: int, round_up: bool, packs: int) -> None:
    assert monthly(item(100, quantity, divide_by=10, round_up=round_up)) == 100 * packs


def test_without_packs_each_unit_costs_its_price() -> None:
    assert monthly(item(100, 3)) == 300
    assert worth(subscription("cus_a", item(unit_amount=None)), NOW) == Worth(
        flags=frozenset({recurring.PRICE_UNREADABLE})
    )


@pytest.mark.parametrize(
    ("mode", "quantity", "listed"),
    [
        ("volume", 10, 1_003),
        ("volume", 11, 800),
        ("volume", 20, 1_250),
        ("volume", 30, 600),
        ("volume", 31, 620),
        ("graduated", 10, 1_003),
        ("graduated", 11, 1_303),
        ("graduated", 25, 1_853),
        ("graduated", 31, 1_953),
    ],
)
def test_tiers_hold_their_own_last_unit_and_the_last_tier_the_rest(
    mode: str, quantity: int, listed: int
) -> None:
    assert monthly(item(0, quantity, unit_amount=None, tiers_mode=mode, tiers=STEPS)) == listed


@pytest.mark.parametrize(
    ("discounts", "left"),
    [
        ((percent(25),), 1_500),
        ((percent(25), percent(50)), 750),
        ((amount(300), percent(50)), 850),
        ((amount(2_500),), 0),
        ((percent(100),), 0),
        ((percent(50, duration="once"), amount(300)), 1_700),
        ((percent(50, start=NOW),), 1_000),
        ((percent(50, start=NOW + MICROSECOND),), 2_000),
        ((percent(50, end=NOW),), 2_000),
        ((percent(50, end=NOW + MICROSECOND),), 1_000),
    ],
)
def test_discounts_in_force_come_off_in_their_order(
    discounts: tuple[PulledDiscount, ...], left: int
) -> None:
    assert monthly(item(2_000), discounts=discounts) == left
    assert monthly(item(2_000, discounts=discounts)) == left


def test_an_amount_comes_off_each_invoice_and_the_shortest_interval_makes_them() -> None:
    yearly = item(24_000, interval="year")

    assert monthly(item(24_000, interval="year", discounts=(amount(12_000),))) == 1_000
    assert monthly(yearly, item(1_000), discounts=(amount(600),)) == 2_400
    assert monthly(yearly, discounts=(amount(1_200),)) == 1_900


def test_the_unknown_terms_of_an_item_are_told() -> None:
    hidden = PulledDiscount(duration="", start=None, end=None)

    assert worth(subscription("cus_a", item(discounts=(hidden,))), NOW) == Worth(
        flags=frozenset({recurring.DISCOUNT_UNREADABLE})
    )


def test_what_only_meters_is_worth_nothing_and_its_items_are_counted() -> None:
    assert worth(subscription("cus_a", item(metered=True), item(metered=True)), NOW) == Worth(
        metered_items=2
    )
    assert monthly(item(metered=True), discounts=(amount(5),)) == 0


def test_less_than_a_minor_unit_a_month_still_counts() -> None:
    assert monthly(item(6, interval="year")) == Fraction(1, 2)
    assert monthly(item(1)) == 1
    assert monthly(item(2), discounts=(amount(1),)) == 1


def test_what_is_new_to_an_old_customer_is_told_apart() -> None:
    def repriced(price_age: timedelta, customer_age: timedelta | None) -> Fraction:
        raised = item(700, created_at=NOW - price_age)
        started_at = None if customer_age is None else NOW - customer_age
        found = worth(subscription("cus_a", raised, item(300), started_at=started_at), NOW)
        assert found.amount == 1_000
        return found.repriced

    fortnight = timedelta(days=14)
    assert repriced(fortnight - MICROSECOND, fortnight) == 700
    assert repriced(fortnight, fortnight) == 0
    assert repriced(fortnight - MICROSECOND, fortnight - MICROSECOND) == 0
    assert repriced(DAY, None) == 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"status": "past_due"}, None),
        ({"status": "canceled"}, "canceled"),
        ({"collection_paused": True}, "collection_paused"),
        ({"trial_end": NOW}, None),
        ({"trial_end": NOW + MICROSECOND}, "trialing"),
    ],
)
def test_why_a_subscription_is_idle(changed: dict[str, Any], reason: str | None) -> None:
    assert recurring.idle(subscription(**changed), NOW) == reason


def test_a_customer_pays_for_an_interval_and_thirty_five_days() -> None:
    quarterly = subscription("cus_a", item(interval_count=3), item(interval="fortnight"))
    last = NOW - timedelta(days=3 * 31 + 35)

    assert recurring.interval_of(quarterly) == timedelta(days=93)
    assert recurring.unpaid(quarterly, {"cus_a": last}, NOW) is None
    assert recurring.unpaid(quarterly, {"cus_a": last - MICROSECOND}, NOW) == "never_paid"
    assert recurring.unpaid(quarterly, {"cus_b": NOW}, NOW) == "never_paid"


def test_who_owes_for_more_than_thirty_days_does_not_count() -> None:
    since = NOW - timedelta(days=30)
    late: dict[str, Any] = {"status": "past_due", "past_due_since": since}

    assert recurring.unpaid(subscription(**late), {"cus_a": NOW}, NOW) is None
    owing = subscription(**late | {"past_due_since": since - MICROSECOND})
    assert recurring.unpaid(owing, {"cus_a": NOW}, NOW) == "past_due"
    assert (
        recurring.unpaid(subscription(past_due_since=NOW - 99 * DAY), {"cus_a": NOW}, NOW) is None
    )


def test_a_payment_is_late_since_the_end_of_what_was_paid_or_the_present_period() -> None:
    begun = subscription(period_start=NOW - 10 * DAY)

    assert recurring.late_since(begun, NOW - 20 * DAY) == NOW - 10 * DAY
    assert recurring.late_since(begun, NOW - 50 * DAY) == NOW - 19 * DAY
    assert recurring.late_since(subscription(period_start=None), NOW - 50 * DAY) == NOW - 19 * DAY
