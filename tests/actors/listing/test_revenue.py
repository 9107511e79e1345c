"""Definition rv1, case by case."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.listing.orders import END, MIDDLE, START, line, order, paid
from tolsey.actors.listing import revenue
from tolsey.storage.records.selling.revenue import (
    CurrencyFigures,
    Measure,
    PulledLine,
    PulledOrder,
    PulledTransaction,
    SkippedOrders,
)

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "order_vectors.json"
GOLDEN = json.loads(SHARED.read_text())["cases"] if SHARED.exists() else []


def measured(*orders: PulledOrder) -> Measure:
    return revenue.measure(orders, START, END)


def earned(*orders: PulledOrder) -> dict[str, int]:
    return {each.currency: each.revenue30d for each in measured(*orders).figures}


def skipped(*orders: PulledOrder) -> dict[str, int]:
    return {each.reason: each.orders for each in measured(*orders).skipped}


def golden_order(case: dict[str, Any]) -> PulledOrder:
    def moment(name: str) -> datetime | None:
        return datetime.fromisoformat(case[name]) if name in case else None

    processed_at = moment("processedAt")
    assert processed_at is not None
    return PulledOrder(
        order_id="1",
        processed_at=processed_at,
        created_at=moment("createdAt"),
        currency=case["currency"],
        test=case.get("test", False),
        cancelled_at=moment("cancelledAt"),
        source_name=case.get("sourceName"),
        total=Decimal(case["total"]),
        current_total=Decimal(case["currentTotal"]) if "currentTotal" in case else None,
        refunded=Decimal(case.get("refunded", "0")),
        lines=tuple(
            PulledLine(
                Decimal(each["afterDiscountsBeforeTaxes"]),
                each["quantity"],
                each["currentQuantity"],
                each.get("isGiftCard", False),
                each.get("sellingPlan"),
            )
            for each in case["lineItems"]
        ),
        transactions=tuple(
            PulledTransaction(
                each["kind"],
                each["status"],
                each["test"],
                each["manualPaymentGateway"],
                Decimal(each["amount"]),
            )
            for each in case["transactions"]
        ),
    )


@pytest.mark.skipif(not GOLDEN, reason="the golden cases lie beside the project")
@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_golden_case(case: dict[str, Any]) -> None:
    start, end = map(datetime.fromisoformat, case["window"])
    found = revenue.measure(map(golden_order, case["orders"]), start, end)

    assert {
        "revenue30d": {each.currency: each.revenue30d for each in found.figures},
        "mrr": {each.currency: each.mrr for each in found.figures},
        "annualised": {each.currency: each.annualised for each in found.figures},
        "orders": found.orders,
        "skipped": {each.reason: each.orders for each in found.skipped},
    } == case["expected"]


def test_tax_and_shipping_are_not_revenue() -> None:
    sold = order(line("80"), total=Decimal("99.50"), transactions=(paid("99.50"),))

    assert measured(sold) == Measure((CurrencyFigures("USD", 8000, 0, 96000, 1),), orders=1)


def test_a_deposit_counts_for_the_share_that_was_paid() -> None:
    assert earned(order(line("200"), transactions=(paid("50"),))) == {"USD": 5000}


def test_paying_too_much_does_not_sell_more() -> None:
    assert earned(order(line("200"), transactions=(paid("500"),))) == {"USD": 20000}


def test_an_authorisation_counts_once_it_is_captured() -> None:
    held = paid("70", kind="AUTHORIZATION")

    assert skipped(order(line("70"), transactions=(held,))) == {"unpaid": 1}
    assert earned(order(line("70"), transactions=(held, paid("70", kind="CAPTURE")))) == {
        "USD": 7000
    }


def test_the_part_paid_in_cash_does_not_count() -> None:
    mixed = order(line("100"), transactions=(paid("30"), paid("70", manual=True)))

    assert earned(mixed) == {"USD": 3000}
    assert measured(mixed).flags == ("manual_share",)


def test_a_goodwill_refund_lowers_the_order_it_belongs_to() -> None:
    kept = order(line("100"), current_total=Decimal(100), refunded=Decimal(15))

    assert earned(kept) == {"USD": 8500}


def test_the_refund_of_returned_goods_is_not_subtracted_twice() -> None:
    returned = order(line("100", 4, 3), current_total=Decimal(75), refunded=Decimal(25))

    assert earned(returned) == {"USD": 7500}


def test_a_refund_beyond_the_price_never_makes_an_order_negative() -> None:
    generous = order(line("100"), current_total=Decimal(100), refunded=Decimal(400))

    assert earned(generous, order(line("1"))) == {"USD": 100}


def test_goodwill_lowers_the_recurring_part_in_proportion() -> None:
    mixed = order(
        line("30", selling_plan="gid://plan/1"),
        line("70"),
        current_total=Decimal(100),
        refunded=Decimal(10),
    )

    assert measured(mixed).figures == (CurrencyFigures("USD", 9000, 2700, 108000, 1),)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"test": True, "cancelled_at": MIDDLE}, "test"),
        ({"cancelled_at": MIDDLE, "processed_at": END}, "cancelled"),
        ({"processed_at": END, "created_at": START}, "outside_window"),
        ({"processed_at": START - timedelta(seconds=1)}, "outside_window"),
        ({"created_at": MIDDLE + timedelta(hours=49), "transactions": ()}, "imported"),
        ({"created_at": MIDDLE - timedelta(hours=49)}, "imported"),
        ({"transactions": ()}, "unpaid"),
        ({"transactions": (paid("9", status="FAILURE"),)}, "unpaid"),
        ({"transactions": (paid("9", manual=True),)}, "manual_gateway"),
    ],
)
def test_the_first_reason_that_holds_is_the_one_noted(changed: dict[str, Any], reason: str) -> None:
    assert skipped(order(line("9"), **changed)) == {reason: 1}


def test_the_window_has_its_first_instant_and_not_its_last() -> None:
    first = order(line("5"), processed_at=START, created_at=START)
    last = order(line("5"), processed_at=END, created_at=END)

    assert earned(first, last) == {"USD": 500}


def test_an_order_entered_two_days_late_still_counts() -> None:
    assert earned(order(line("5"), created_at=MIDDLE + timedelta(hours=48))) == {"USD": 500}


def test_currencies_have_their_own_minor_units() -> None:
    orders = [
        order(line("1234.5"), currency="JPY"),
        order(line("1.2345"), currency="KWD"),
        order(line("1.005"), currency="EUR"),
    ]

    assert earned(*orders) == {"EUR": 101, "JPY": 1235, "KWD": 1235}
    assert measured(*orders).flags == ("multiple_currencies",)


def test_each_currency_is_rounded_once_and_not_each_order() -> None:
    assert earned(*[order(line("0.004"))] * 10) == {"USD": 4}


def test_thirds_that_add_up_to_half_a_cent_are_rounded_up() -> None:
    third = order(line("0.01", 6, 1))

    assert earned(third, third, third) == {"USD": 1}


def test_refunds_of_more_than_a_fifth_are_flagged() -> None:
    calm = order(line("100"), current_total=Decimal(100), refunded=Decimal(20))
    wild = replace(calm, refunded=Decimal(21))

    assert measured(calm).flags == ()
    assert measured(wild).flags == ("refund_rate",)


def test_draft_orders_are_flagged_though_a_processor_was_paid() -> None:
    draft = order(line("30"), source_name="shopify_draft_order")

    assert measured(draft, order(line("70"))).flags == ("manual_share",)
    assert earned(draft, order(line("70"))) == {"USD": 10000}


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [(301, [100, 100], True), (300, [100, 100], False), (500, [], False), (10, [0, 0], True)],
)
def test_a_spike_is_more_than_three_times_the_median_before(
    now: int, before: list[int], expected: bool
) -> None:
    assert revenue.is_spike(now, before) is expected


money = st.decimals(min_value=0, max_value=100_000, places=2)
payments = st.builds(
    PulledTransaction,
    st.sampled_from(["SALE", "CAPTURE", "REFUND", "AUTHORIZATION", "VOID"]),
    st.sampled_from(["SUCCESS", "PENDING", "FAILURE"]),
    st.booleans(),
    st.booleans(),
    money,
)
lines = st.builds(
    PulledLine,
    money,
    st.integers(0, 7),
    st.integers(0, 9),
    st.booleans(),
    st.sampled_from([None, "gid://plan/1"]),
)
moments = st.datetimes(datetime(2026, 2, 25), datetime(2026, 4, 5), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
pulled = st.builds(
    PulledOrder,
    order_id=st.just("1"),
    processed_at=moments,
    created_at=st.none() | moments,
    currency=st.sampled_from(["USD", "JPY", "KWD"]),
    test=st.booleans(),
    cancelled_at=st.none() | moments,
    source_name=st.sampled_from([None, "web", "shopify_draft_order"]),
    total=money,
    current_total=st.none() | money,
    refunded=money,
    lines=st.lists(lines, max_size=4).map(tuple),
    transactions=st.lists(payments, max_size=3).map(tuple),
)
good = st.builds(
    lambda sold, current, share: order(
        sold, current_total=current, transactions=(paid(str(share)),) if share else ()
    ),
    lines.map(lambda each: replace(each, quantity=each.quantity + 1)),
    st.none() | money,
    money,
)
orders_lists = st.lists(pulled | good, max_size=12)


@given(orders_lists, st.randoms(use_true_random=False))
def test_the_order_of_orders_does_not_matter(orders: list[PulledOrder], random: Any) -> None:
    shuffled = list(orders)
    random.shuffle(shuffled)

    assert measured(*shuffled) == measured(*orders)


@given(orders_lists)
def test_no_figure_is_ever_negative_and_nothing_recurs_that_was_not_sold(
    orders: list[PulledOrder],
) -> None:
    for each in measured(*orders).figures:
        assert 0 <= each.mrr <= each.revenue30d
        assert each.annualised == 12 * each.revenue30d


@given(orders_lists, orders_lists)
def test_two_lots_of_orders_are_worth_their_sum(
    some: list[PulledOrder], others: list[PulledOrder]
) -> None:
    one, two, both = measured(*some), measured(*others), measured(*some, *others)

    assert both.orders == one.orders + two.orders
    for each in both.figures:
        apart = [
            part.revenue30d
            for part in (*one.figures, *two.figures)
            if part.currency == each.currency
        ]
        # Each lot is rounded once, so the sum of the lots is off by one at most.
        assert abs(each.revenue30d - sum(apart)) <= 1


@given(orders_lists)
def test_a_currency_is_worth_what_its_own_orders_are(orders: list[PulledOrder]) -> None:
    for each in measured(*orders).figures:
        own = [sold for sold in orders if sold.currency == each.currency]
        assert measured(*own).figures == (each,)


@given(orders_lists)
def test_every_order_is_counted_or_skipped(orders: list[PulledOrder]) -> None:
    found = measured(*orders)

    assert found.orders + sum(each.orders for each in found.skipped) == len(orders)
    assert found.skipped == tuple(sorted(found.skipped, key=lambda each: each.reason))
    assert all(isinstance(each, SkippedOrders) for each in found.skipped)
