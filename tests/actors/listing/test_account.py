"""Definition rv2 for a payment processor, case by case."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.listing.payments import DAY, NOW, charge, item, subscription
from tests.golden.cases import golden
from tolsey.actors.listing.verification import account, recurring
from tolsey.actors.listing.verification.account import Earlier
from tolsey.http.clients.payments import revenue_shapes as shapes
from tolsey.storage.records.selling.revenue import (
    CurrencyFigures,
    Measure,
    PulledCharge,
    PulledDiscount,
    PulledItem,
    PulledSubscription,
    Tier,
)

GOLDEN = golden("revenue_vectors.json")["cases"]


def measured(
    charges: list[PulledCharge],
    subscriptions: list[PulledSubscription] | None = None,
    earlier: dict[str, Earlier] | None = None,
) -> Measure:
    return account.measure(charges, subscriptions or [], NOW, earlier)


def figures(found: Measure, currency: str = "USD") -> CurrencyFigures:
    return next(each for each in found.figures if each.currency == currency)


def skipped(found: Measure) -> dict[str, int]:
    return {each.reason: each.orders for each in found.skipped}


def mrr(*subscriptions: PulledSubscription, paid: tuple[str, ...] = ("cus_a",)) -> int:
    found = measured([charge(who) for who in paid], list(subscriptions))
    return figures(found).mrr


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_every_golden_case_comes_out(case: dict[str, Any]) -> None:
    now = datetime.fromtimestamp(case["now"], UTC)
    charges = [charge(who, created_at=now - 20 * DAY) for who in case["paidCustomers"]]
    found = account.measure(charges, map(shapes.subscription, case["subscriptions"]), now)

    wanted = {name.upper(): minor for name, minor in case["expectedMrrMinor"].items() if minor}
    assert {each.currency: each.mrr for each in found.figures if each.mrr} == wanted


@pytest.mark.parametrize(
    ("changed", "earned"),
    [
        ({}, 1_000),
        ({"refunded": 400}, 600),
        ({"transferred": 900}, 100),
        ({"refunded": 400, "transferred": 900}, 0),
        ({"dispute": "needs_response"}, 0),
        ({"dispute": "lost"}, 0),
        ({"dispute": "open"}, 0),
        ({"dispute": "won"}, 1_000),
        ({"created_at": NOW - 30 * DAY}, 1_000),
    ],
)
def test_a_payment_is_worth_what_the_seller_keeps(changed: dict[str, Any], earned: int) -> None:
    found = figures(measured([charge(**changed)]))

    assert (found.revenue30d, found.annualised, found.orders) == (earned, 12 * earned, 1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"live": False}, {"test": 1}),
        ({"succeeded": False}, {"failed": 1}),
        ({"captured": 0}, {"uncaptured": 1}),
        ({"created_at": NOW - 30 * DAY - timedelta(seconds=1)}, {}),
        ({"created_at": NOW}, {}),
    ],
)
def test_what_is_no_payment_of_the_window_does_not_count(
    changed: dict[str, Any], reason: dict[str, int]
) -> None:
    found = measured([charge(**changed)])

    assert (found.figures, skipped(found)) == ((), reason)


@pytest.mark.parametrize(
    "changed",
    [
        {"refunded": 1_000},
        {"live": False},
        {"succeeded": False},
        {"dispute": "lost"},
        {"created_at": NOW - 67 * DAY},
    ],
)
def test_a_customer_whose_payments_came_to_nothing_never_paid(changed: dict[str, Any]) -> None:
    found = measured([charge(**changed)], [subscription()])

    assert skipped(found)["never_paid"] == 1


def test_a_yearly_customer_paid_up_to_a_year_ago() -> None:
    yearly = subscription("cus_a", item(12_000, interval="year"))

    assert account.reach([yearly], NOW) == timedelta(days=366 + 35)
    assert account.reach([], NOW) == timedelta(days=90)
    for idle in (replace(yearly, status="trialing"), replace(yearly, trial_end=NOW + DAY)):
        assert account.reach([idle], NOW) == timedelta(days=90)
    for days, minor in ((400, [1_000]), (402, [])):
        found = measured([charge(created_at=NOW - days * DAY)], [yearly])
        assert [each.mrr for each in found.figures] == minor


@pytest.mark.parametrize(
    ("paid_days_ago", "period_days_ago", "counts"),
    [(40, 9, True), (61, 30, True), (62, 31, False), (62, 1, False)],
)
def test_who_is_late_counts_for_thirty_days_however_many_periods_have_begun(
    paid_days_ago: int, period_days_ago: int, counts: bool
) -> None:
    late = subscription(status="past_due", period_start=NOW - period_days_ago * DAY)
    found = measured([charge(created_at=NOW - paid_days_ago * DAY)], [late])

    assert [each.mrr for each in found.figures] == ([1_000] if counts else [])


def test_a_paused_collection_earns_nothing() -> None:
    found = measured([charge()], [subscription(collection_paused=True)])

    assert (figures(found).mrr, skipped(found)) == (0, {"collection_paused": 1})


def test_what_ends_with_its_period_is_counted_and_shown_apart() -> None:
    ending = subscription("cus_b", item(500), cancels_at_period_end=True)
    found = figures(measured([charge(), charge("cus_b")], [subscription(), ending]))

    assert (found.mrr, found.mrr_at_risk, found.subscribers) == (1_500, 500, 2)


def test_metered_items_are_counted_apart() -> None:
    both = subscription("cus_a", item(), item(300, metered=True))
    found = measured([charge()], [both])

    assert (figures(found).mrr, skipped(found)) == (1_000, {"metered": 1})


def test_items_of_several_intervals_are_added() -> None:
    assert mrr(subscription("cus_a", item(1_000), item(12_000, interval="year"))) == 2_000


def test_an_inclusive_tax_is_taken_out_and_an_unknown_one_is_told() -> None:
    taxed = item(1_200, tax_inclusive=True, inclusive_tax_percent=Decimal(20))
    unknown = subscription("cus_a", item(1_200, tax_inclusive=True))

    assert mrr(subscription("cus_a", taxed)) == 1_000
    found = measured([charge()], [unknown])
    assert (figures(found).mrr, found.flags) == (1_200, (recurring.TAX_UNKNOWN,))


def test_a_discount_of_the_whole_is_shared_before_tax_is_taken_out() -> None:
    taxed = item(1_200, tax_inclusive=True, inclusive_tax_percent=Decimal(20))
    off = PulledDiscount(duration="forever", start=None, end=None, amount_off=Decimal(600))

    assert mrr(subscription("cus_a", taxed, discounts=(off,))) == 500


def test_unknown_terms_leave_nothing_and_are_told() -> None:
    hidden = subscription("cus_a", discounts=(PulledDiscount(duration="", start=None, end=None),))
    tiered = subscription("cus_b", item(tiers_mode="graduated", unit_amount=None))
    odd = subscription("cus_c", item(interval="fortnight"))
    found = measured([charge(), charge("cus_b"), charge("cus_c")], [hidden, tiered, odd])

    assert figures(found).mrr == 0
    assert set(found.flags) == {
        recurring.DISCOUNT_UNREADABLE,
        recurring.TIERS_UNREADABLE,
        recurring.PRICE_UNREADABLE,
    }


def test_tiers_may_ask_for_a_flat_amount() -> None:
    steps = (Tier(10, Decimal(100), Decimal(0)), Tier(None, Decimal(50), Decimal(250)))
    tiered = {"unit_amount": None, "tiers": steps}

    assert mrr(subscription("cus_a", item(0, 15, tiers_mode="graduated", **tiered))) == 1_500
    assert mrr(subscription("cus_a", item(0, 15, tiers_mode="volume", **tiered))) == 1_000
    assert mrr(subscription("cus_a", item(0, 10, tiers_mode="graduated", **tiered))) == 1_000


def test_a_discount_that_ended_or_has_not_begun_is_not_in_force() -> None:
    ended = PulledDiscount(
        duration="repeating", start=NOW - 90 * DAY, end=NOW, percent_off=Decimal(50)
    )
    later = PulledDiscount(duration="forever", start=NOW + DAY, end=None, percent_off=Decimal(50))

    assert mrr(subscription("cus_a", discounts=(ended, later))) == 1_000


def test_currencies_that_the_processor_counts_otherwise_are_told_in_iso_units() -> None:
    found = measured([charge("cus_a", 150_050, currency="ISK"), charge("cus_b", 7, currency="JPY")])

    assert figures(found, "ISK").revenue30d == 1_501
    assert figures(found, "JPY").revenue30d == 7
    assert found.flags == ("multiple_currencies",)


def flags_of(*charges: PulledCharge) -> set[str]:
    return set(measured(list(charges)).flags)


def test_one_customer_who_pays_more_than_half_is_a_flag_among_five() -> None:
    others = [charge(f"cus_{n}", 100) for n in range(4)]

    assert flags_of(*others, charge("whale", 401)) == {"top_customer"}
    assert not flags_of(*others, charge("whale", 400))
    assert not flags_of(*others[:3], charge("whale", 9_000))


def test_one_card_behind_three_customers_is_a_flag() -> None:
    shared = [charge(f"cus_{n}", 100, card="one") for n in range(3)]
    others = [charge(f"own_{n}", 100, card=f"own_{n}") for n in range(12)]

    assert flags_of(*shared, *others[:11]) == {"shared_card"}
    assert not flags_of(*shared, *others)
    assert not flags_of(*shared[:2], *others[:1])


def test_much_that_came_back_is_a_flag() -> None:
    kept = [charge(f"cus_{n}", 100) for n in range(4)]

    assert not flags_of(*kept, charge("cus_x", 100, refunded=100))
    assert flags_of(*kept, charge("cus_x", 101, refunded=101)) == {"refund_rate"}
    assert flags_of(*kept, charge("cus_x", 101, dispute="lost")) == {"refund_rate"}


def test_a_month_of_more_than_three_times_those_before_is_a_flag() -> None:
    def before(first: int, second: int) -> list[PulledCharge]:
        return [
            charge("cus_a", first, created_at=NOW - 40 * DAY),
            charge("cus_a", second, created_at=NOW - 70 * DAY),
        ]

    assert flags_of(*before(100, 300), charge(cents=601)) == {"revenue_spike"}
    assert not flags_of(*before(100, 300), charge(cents=600))
    assert not flags_of(charge(cents=9_000))
    young = charge("cus_a", 300, created_at=NOW - 40 * DAY)
    assert not flags_of(young, charge(cents=900))
    assert flags_of(young, charge(cents=901)) == {"revenue_spike"}


def test_old_customers_on_new_prices_who_make_much_of_a_rise_are_a_flag() -> None:
    def found(new_price_days: int, joined_days: int = 100, mrr_then: int = 2_000) -> set[str]:
        raised = item(1_500, created_at=NOW - new_price_days * DAY)
        both = [
            subscription("cus_a", raised, started_at=NOW - joined_days * DAY),
            subscription("cus_b", item(1_000)),
        ]
        paid = [charge("cus_a"), charge("cus_b")]
        return set(measured(paid, both, {"USD": Earlier(mrr_then, 2)}).flags)

    assert found(3) == {"price_rise"}
    assert not found(20)
    assert not found(3, joined_days=5)
    assert not found(3, mrr_then=2_500)
    assert not measured([charge()], [subscription("cus_a", item(created_at=NOW - DAY))]).flags


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9),
            st.integers(0, 10**9),
            st.integers(0, 10**9),
            st.integers(0, 120),
            st.sampled_from([None, "won", "lost"]),
        ),
        max_size=20,
    ),
    st.randoms(),
)
def test_whatever_was_paid_the_sum_is_never_more_than_what_was_taken(
    rows: list[tuple[int, int, int, int, str | None]], shuffled: Any
) -> None:
    charges = [
        charge(
            f"cus_{n % 3}",
            taken,
            refunded=min(taken, back),
            transferred=sent,
            created_at=NOW - days * DAY,
            dispute=dispute,
        )
        for n, (taken, back, sent, days, dispute) in enumerate(rows)
    ]
    found = measured(charges)
    shuffled.shuffle(charges)

    assert measured(charges) == found
    for each in found.figures:
        assert 0 <= each.revenue30d <= sum(one.captured for one in charges)


def test_nothing_of_a_customer_but_the_id_is_read() -> None:
    body = {
        "id": "ch_1",
        "created": int(NOW.timestamp()) - 5,
        "currency": "usd",
        "status": "succeeded",
        "livemode": True,
        "amount_captured": 1_000,
        "amount_refunded": 0,
        "application_fee_amount": 100,
        "transfer_data": {"amount": None, "destination": "acct_x"},
        "customer": {"id": "cus_a", "email": "a@example.com", "name": "Ann"},
        "billing_details": {"email": "a@example.com", "name": "Ann"},
        "payment_method_details": {"card": {"fingerprint": "Xt5EWLLDS7FJjR1c", "last4": "4242"}},
    }
    read = shapes.charge(body, b"k" * 32, None)

    assert "example.com" not in repr(read)
    assert "Xt5EWLLDS7FJjR1c" not in repr(read)
    assert read.transferred == 900
    assert read.card == shapes.charge(body, b"k" * 32, None).card
    assert read.card != shapes.charge(body, b"j" * 32, None).card


def test_the_terms_of_a_coupon_are_read_in_both_of_their_places() -> None:
    coupon = {"percent_off": 12.5, "duration": "forever"}
    old = shapes.discount({"coupon": coupon, "start": 1}, "USD")
    new = shapes.discount({"source": {"type": "coupon", "coupon": coupon}, "start": 1}, "USD")

    assert old == new
    assert old.percent_off == Decimal("12.5")
    for hidden in ("di_1", {"source": {"coupon": "co_1"}, "start": 1}):
        assert shapes.discount(hidden, "USD").duration == shapes.UNKNOWN


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://www.corner.example/shop", "www.corner.example"),
        ("corner.example", "corner.example"),
        (None, None),
        ("", None),
    ],
)
def test_the_domain_of_an_account_is_the_host_of_its_address(
    url: str | None, domain: str | None
) -> None:
    found = shapes.account({"id": "acct_1", "business_profile": {"url": url}})

    assert (found.domain, found.is_live) == (domain, False)


def test_a_payment_counts_in_one_window_only() -> None:
    tally = account.AccountTally(NOW)
    for days in (30, 60, 90, 91):
        tally.add_charge(charge(cents=days, created_at=NOW - days * DAY))

    assert (tally.sums["USD"].revenue, tally.sums["USD"].before) == (30, [60, 90])
    assert tally.first_at == NOW - 91 * DAY


def test_every_payment_of_a_window_is_added_up() -> None:
    tally = account.AccountTally(NOW)
    for cents in (100, 30):
        tally.add_charge(charge("cus_a", cents, refunded=10, card="one"))
        tally.add_charge(charge("cus_a", cents, created_at=NOW - 40 * DAY))
    tally.add_charge(charge(None, 7, card="one"))
    tally.add_charge(charge(None, 5))
    sums = tally.sums["USD"]

    assert (sums.revenue, sums.captured, sums.returned, sums.payments) == (122, 142, 20, 4)
    assert sums.before == [130, 0]
    assert {payer[:3]: paid for payer, paid in sums.customers.items()} == {
        "cus": 110,
        "one": 7,
        "ch_": 5,
    }
    assert (sums.cards["one"].paid, sums.cards["one"].customers) == (117, {"cus_a", "one"})
    assert tally.measure({}).orders == 4


def test_the_last_moment_of_a_window_is_the_first_of_the_next() -> None:
    moment = timedelta(microseconds=1)
    tally = account.AccountTally(NOW)
    for days, cents in ((0, 1), (30, 2), (60, 4)):
        tally.add_charge(charge(cents=cents, created_at=NOW - days * DAY - moment))
    tests = [charge(live=False, created_at=at) for at in (NOW, NOW - moment, NOW - 30 * DAY)]
    for each in (*tests, charge(live=False, created_at=NOW - 30 * DAY - moment)):
        tally.add_charge(each)

    assert (tally.sums["USD"].revenue, tally.sums["USD"].before) == (1, [2, 4])
    assert tally.skipped == {"test": 2}


def test_a_payment_of_one_minor_unit_counts() -> None:
    assert figures(measured([charge(cents=1)])).revenue30d == 1


def test_a_customer_paid_when_the_latest_payment_was_made() -> None:
    late = subscription(status="past_due", period_start=None)
    for days in ((20, 80), (80, 20)):
        paid = [charge(created_at=NOW - ago * DAY) for ago in days]
        assert figures(measured(paid, [late])).mrr == 1_000


def test_subscriptions_that_come_to_nothing_are_told_and_those_of_little_count() -> None:
    free, small = subscription("cus_a", item(0)), subscription("cus_a", item(1))
    trial = subscription(trial_end=NOW + DAY)
    metered = subscription("cus_a", item(metered=True), item(metered=True), item())
    found = measured([charge()], [free, free, small, trial, metered])

    assert skipped(found) == {"free": 2, "trialing": 1, "metered": 2}
    assert figures(found).mrr == 1_001


OTHER_CURRENCY = (
    pytest.param(
        "USD", 2_000, item(27_000, currency="KRW"), id="27,000 won where 20.00 USD is paid"
    ),
    pytest.param("JPY", 3_000, item(2_000, currency="USD"), id="20.00 USD where 3,000 yen is paid"),
)


@pytest.mark.parametrize(("currency", "paid", "priced"), OTHER_CURRENCY)
def test_a_subscription_whose_price_is_in_another_currency_is_excluded(
    currency: str, paid: int, priced: PulledItem
) -> None:
    found = measured(
        [charge("cus_a", paid, currency=currency)],
        [
            subscription("cus_a", priced, currency=currency),
            subscription("cus_a", item(500, currency=currency), priced, currency=currency),
            subscription("cus_a", item(700, currency=currency), currency=currency),
        ],
    )

    assert skipped(found) == {"price_currency_unreadable": 2}
    assert found.flags == ("price_currency_unreadable",)
    assert [(each.currency, each.revenue30d, each.mrr) for each in found.figures] == [
        (currency, paid, 700)
    ]


def test_the_currency_of_a_metered_price_excludes_nothing() -> None:
    metered = item(27_000, currency="KRW", metered=True)
    found = measured([charge()], [subscription("cus_a", item(900), metered)])

    assert (figures(found).mrr, skipped(found), found.flags) == (900, {"metered": 1}, ())


def test_why_nothing_is_paid_is_told_before_the_currency_of_the_price() -> None:
    found = measured([], [subscription("cus_a", item(27_000, currency="KRW"))])

    assert (skipped(found), found.flags) == ({"never_paid": 1}, ())


@pytest.mark.parametrize(("currency", "worth"), [("usd", 700), (None, 700), ("krw", 0)])
def test_an_amount_off_in_another_currency_is_unreadable(currency: str | None, worth: int) -> None:
    coupon = {"duration": "forever", "amount_off": 300, "currency": currency}
    body = {
        "id": "sub_1",
        "status": "active",
        "currency": "usd",
        "customer": "cus_a",
        "discounts": [{"coupon": coupon}],
        "items": {
            "data": [{"price": {"unit_amount": 1_000, "recurring": {"interval": "month"}}}],
        },
    }
    found = measured([charge()], [shapes.subscription(body)])

    assert figures(found).mrr == worth
    assert found.flags == (() if worth else ("discount_unreadable",))


def test_what_ends_is_added_and_told_in_iso_units() -> None:
    ending = [
        subscription(
            "cus_a", item(150_050, currency="ISK"), cancels_at_period_end=True, currency="ISK"
        ),
        subscription(
            "cus_b", item(100_000, currency="ISK"), cancels_at_period_end=True, currency="ISK"
        ),
    ]
    found = measured([charge(who, 100, currency="ISK") for who in ("cus_a", "cus_b")], ending)

    assert figures(found, "ISK") == CurrencyFigures(
        currency="ISK",
        revenue30d=2,
        mrr=2_501,
        annualised=24,
        orders=2,
        mrr_at_risk=2_501,
        subscribers=2,
    )


def repriced(currency: str, cents: int, then: Earlier, customers: int = 1) -> bool:
    """Say whether a rise is flagged where each of some old customers pays a new price."""
    raised = item(cents, created_at=NOW - DAY, currency=currency)
    names = [f"cus_{n}" for n in range(customers)]
    found = measured(
        [charge(name, 100_000, currency=currency) for name in names],
        [subscription(name, raised, currency=currency) for name in names],
        {currency: then},
    )
    return "price_rise" in found.flags


def test_a_rise_is_explained_by_more_than_three_tenths() -> None:
    assert repriced("USD", 1_000, Earlier(999, 1))
    assert not repriced("USD", 1_000, Earlier(1_000, 1))
    assert not repriced("USD", 1_000, Earlier(500, 0))
    assert repriced("USD", 1_500, Earlier(2_000, 2), customers=2)
    assert not repriced("USD", 1_000, Earlier(2_000, 2), customers=2)
    # A hundred of the processor's minor units are one of ISO 4217's.
    assert repriced("ISK", 150_000, Earlier(1_000, 1))
    assert not repriced("ISK", 150_000, Earlier(1_500, 1))


def test_three_tenths_of_a_rise_explained_are_not_more() -> None:
    then = Earlier(1_000, 1)
    sums = account.AccountSums(mrr=recurring.ZERO + 2_000, repriced=recurring.ZERO + 1_300)
    sums.repriced_subscribers.add("cus_a")

    assert not account.explained_by_price(sums, "USD", then)
    sums.repriced += 1
    assert account.explained_by_price(sums, "USD", then)
    assert not account.explained_by_price(sums, "USD", None)


def test_what_each_of_two_old_customers_paid_is_known_by_their_average() -> None:
    same = [subscription(who, item(created_at=NOW - DAY)) for who in ("cus_a", "cus_b")]
    paid = [charge(who) for who in ("cus_a", "cus_b", "cus_c")]
    found = measured(paid, [*same, subscription("cus_c")], {"USD": Earlier(2_000, 2)})

    assert "price_rise" not in found.flags


def test_what_is_repriced_is_told_in_iso_units() -> None:
    sums = account.AccountSums(mrr=recurring.ZERO + 601_000, repriced=recurring.ZERO + 101_000)
    sums.repriced_subscribers.add("cus_a")

    assert not account.explained_by_price(sums, "ISK", Earlier(1_000, 1))


def test_an_account_whose_first_payment_opens_the_window_has_none_before() -> None:
    assert not flags_of(charge(created_at=NOW - 30 * DAY))
