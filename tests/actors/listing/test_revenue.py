"""Definition rv2, case by case."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.listing.orders import END, MIDDLE, START, back, line, order, paid, refund
from tests.golden.cases import golden
from tolsey.actors.listing.verification import revenue
from tolsey.actors.ports import ShopFacts
from tolsey.storage.records.selling.revenue import (
    DEFINITION,
    CurrencyFigures,
    Measure,
    PulledLine,
    PulledOrder,
    PulledRefund,
    PulledTransaction,
    SkippedOrders,
    UnprovenOrders,
)

GOLDEN = golden("order_vectors_rv2.json")


def measured(*orders: PulledOrder) -> Measure:
    return revenue.measure(orders, START, END)


def earned(*orders: PulledOrder) -> dict[str, int]:
    return {each.currency: each.revenue30d for each in measured(*orders).figures}


def skipped(*orders: PulledOrder) -> dict[str, int]:
    return {each.reason: each.orders for each in measured(*orders).skipped}


def figures(revenue30d: int, mrr: int = 0, *, orders: int = 1, earlier: int = 0) -> CurrencyFigures:
    return CurrencyFigures(
        currency="USD",
        revenue30d=revenue30d,
        mrr=mrr,
        annualised=12 * revenue30d,
        orders=orders,
        refunds_of_earlier_orders30d=earlier,
    )


def golden_order(case: dict[str, Any]) -> PulledOrder:
    def moment(name: str) -> datetime | None:
        return datetime.fromisoformat(case[name]) if name in case else None

    def amount(name: str) -> Decimal:
        return Decimal(case.get(name, "0"))

    processed_at = moment("processedAt")
    assert processed_at is not None
    refunds = case.get("refunds", [])
    return PulledOrder(
        order_id="1",
        processed_at=processed_at,
        created_at=moment("createdAt"),
        currency=case["currency"],
        test=case.get("test", False),
        cancelled_at=moment("cancelledAt"),
        source_name=case.get("sourceName"),
        has_checkout=case["checkoutToken"],
        disputes=tuple(case.get("disputes", ())),
        total=Decimal(case["total"]),
        current_total=Decimal(case.get("currentTotal", case["total"])),
        tax=amount("currentTax"),
        shipping=amount("currentShipping"),
        tip=amount("tip"),
        duties=amount("currentDuties"),
        duties_included=case.get("dutiesIncluded", False),
        additional_fees=amount("currentAdditionalFees"),
        lines=tuple(
            PulledLine(
                Decimal(each["afterDiscountsBeforeTaxes"]),
                each.get("isGiftCard", False),
                each.get("sellingPlan"),
            )
            for each in case["lineItems"]
        ),
        transactions=(
            *(golden_transaction(each) for each in case["transactions"]),
            *(
                golden_transaction({**gone, "kind": "REFUND"})
                for each in refunds
                for gone in each["transactions"]
            ),
        ),
        refunds=tuple(
            PulledRefund(
                at=processed_at,
                paid_back=sum(
                    (Decimal(gone["amount"]) for gone in each["transactions"]), Decimal(0)
                ),
                goods=Decimal(each["forReturns"]),
                returned=Decimal(each["forReturns"]),
            )
            for each in refunds
        ),
    )


def golden_transaction(case: dict[str, Any]) -> PulledTransaction:
    return PulledTransaction(
        kind=case["kind"],
        status=case["status"],
        test=case.get("test", False),
        manual_payment_gateway=case.get("manualPaymentGateway", False),
        amount=Decimal(case["amount"]),
        gateway=case["gateway"],
        has_fees=case.get("fees", False),
    )


def test_the_golden_cases_are_those_of_the_definition() -> None:
    assert GOLDEN["definition"] == DEFINITION


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=[case["name"] for case in GOLDEN["cases"]])
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

    assert measured(sold) == Measure(figures=(figures(8000),), orders=1)


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
    assert measured(mixed).flags == ("unproven_share",)


@pytest.mark.parametrize(
    "gateway",
    [
        *("gift_card", "Gift Card", "store-credit", "shopify_store_credit", "Cash", "manual"),
        *("bogus", "OTHER", "Cash on Delivery (COD)", "Bank Deposit", "money-order", "check"),
        *("exchange-credit", "Exchange Credit", None, ""),
    ],
)
def test_a_name_behind_which_no_processor_stands_proves_nothing(gateway: str | None) -> None:
    sold = order(line("100"), transactions=(paid("100", gateway=gateway, fees=False),))

    assert skipped(sold) == {"unproven_payment": 1}


@pytest.mark.parametrize("source", ["web", "iphone", "android", "shopify_draft_order"])
def test_an_outside_processor_counts_behind_the_platforms_own_checkout_only(source: str) -> None:
    sold = order(line("9"), source_name=source, transactions=(paid("9", gateway="paypal"),))

    assert earned(sold) == {"USD": 900}
    assert skipped(replace(sold, has_checkout=False)) == {"unproven_payment": 1}
    assert skipped(replace(sold, source_name="pos")) == {"unproven_payment": 1}
    assert skipped(replace(sold, source_name=None)) == {"unproven_payment": 1}


def test_a_fee_proves_a_payment_wherever_it_was_made() -> None:
    renewed = order(line("9"), source_name="subscription_contract", has_checkout=False)

    assert earned(renewed) == {"USD": 900}


def test_a_sync_names_the_gateways_and_sources_that_prove_nothing() -> None:
    till = order(
        line("9"), source_name="pos", has_checkout=False, transactions=(paid("9", gateway="Tap"),)
    )
    split = replace(till, transactions=(paid("4", gateway="Tap"), paid("5", gateway=None)))
    nameless = replace(till, source_name=None)

    assert measured(till, split, nameless).unproven == (
        UnprovenOrders("Tap", "pos", 2),
        UnprovenOrders("Tap", "unknown", 1),
        UnprovenOrders("unknown", "pos", 1),
    )


def test_however_many_names_there_are_a_sync_keeps_a_few() -> None:
    strange = [
        order(line("9"), has_checkout=False, transactions=(paid("9", gateway="x" * 100 + str(n)),))
        for n in range(3)
    ]
    many = [
        order(line("9"), has_checkout=False, transactions=(paid("9", gateway=f"g{n:02}"),))
        for n in range(25)
    ]
    named = measured(*strange, *many).unproven

    assert UnprovenOrders("x" * 80, "web", 3) in named
    assert UnprovenOrders("others", "others", 6) in named
    assert len(named) == 21


def test_a_goodwill_refund_lowers_the_order_it_belongs_to() -> None:
    kept = order(line("100"), transactions=(paid("100"), back("15")), refunds=(refund("15"),))

    assert earned(kept) == {"USD": 8500}


def test_goodwill_is_what_went_back_beyond_tax_and_shipping_too() -> None:
    sold = order(
        line("100"),
        total=Decimal(113),
        tax=Decimal(8),
        shipping=Decimal(5),
        transactions=(paid("113"), back("20", status="AWAITING_RESPONSE")),
        refunds=(refund("20", returned="5"),),
    )

    assert earned(sold) == {"USD": 8500}


def test_a_refund_that_failed_leaves_the_order_as_it_was() -> None:
    sold = order(line("100"), transactions=(paid("100"), back("60", status="FAILURE")))

    assert earned(sold) == {"USD": 10000}


def test_the_refund_of_returned_goods_is_not_subtracted_twice() -> None:
    returned = order(
        line("75"),
        total=Decimal(100),
        current_total=Decimal(75),
        transactions=(paid("100"), back("25")),
        refunds=(refund("25", goods="25"),),
    )

    assert earned(returned) == {"USD": 7500}


def test_what_went_back_in_store_credit_was_kept_in_money() -> None:
    returned = order(
        line("75"),
        total=Decimal(100),
        current_total=Decimal(75),
        transactions=(paid("100"), back("25", gateway="store_credit")),
        refunds=(refund("25", goods="25"),),
    )

    assert earned(returned) == {"USD": 7500}


def test_a_refund_beyond_the_price_never_makes_an_order_negative() -> None:
    generous = order(line("100"), transactions=(paid("100"), back("400")), refunds=(refund("400"),))

    assert earned(generous, order(line("1"))) == {"USD": 100}


def test_goodwill_lowers_the_recurring_part_in_proportion() -> None:
    mixed = order(
        line("30", selling_plan="gid://plan/1"),
        line("70"),
        transactions=(paid("100"), back("10")),
        refunds=(refund("10"),),
    )

    assert measured(mixed).figures == (figures(9000, 2700),)


def test_a_tip_and_included_duties_are_not_the_sellers() -> None:
    sold = order(
        line("100"),
        line("20"),
        tip=Decimal(20),
        duties=Decimal(15),
        duties_included=True,
    )

    assert earned(sold) == {"USD": 8500}
    # Duties on top of the price are no part of it, and the totals say so as well.
    added = replace(sold, duties_included=False, current_total=Decimal(135), total=Decimal(135))
    assert earned(replace(added, transactions=(paid("135"),))) == {"USD": 10000}


def test_fees_on_top_and_gift_cards_are_taken_off_the_totals() -> None:
    sold = order(
        line("100"),
        line("50", is_gift_card=True),
        current_total=Decimal(140),
        additional_fees=Decimal(10),
    )

    assert earned(sold) == {"USD": 8000}


def test_an_exchange_is_paid_with_what_came_back() -> None:
    swapped = order(
        line("60"),
        total=Decimal(160),
        current_total=Decimal(60),
        transactions=(paid("100"), back("40"), paid("60", gateway="exchange-credit", fees=False)),
        refunds=(refund("40", goods="100"),),
    )

    assert earned(swapped) == {"USD": 6000}


def test_an_order_that_asked_for_nothing_earned_nothing() -> None:
    free = order(line("100"), total=Decimal(0), transactions=(paid("100"),))

    assert measured(free).figures == (figures(0),)


@pytest.mark.parametrize("status", ["NEEDS_RESPONSE", "UNDER_REVIEW", "LOST", "ACCEPTED"])
def test_a_dispute_takes_the_order_until_it_is_won(status: str) -> None:
    disputed = order(line("100"), disputes=("WON", status))

    assert skipped(disputed) == {"disputed": 1}
    assert measured(disputed).flags == ("refund_rate",)
    assert earned(replace(disputed, disputes=("WON",))) == {"USD": 10000}


def test_returns_of_orders_that_left_the_window_are_told_apart_and_taken_off() -> None:
    before = START - timedelta(days=3)
    old = order(
        line("40", selling_plan="gid://plan/1"),
        processed_at=before,
        created_at=before,
        total=Decimal(100),
        current_total=Decimal(40),
        transactions=(paid("100"), back("66")),
        refunds=(
            refund("26", goods="20", returned="24"),
            refund("40", goods="40", at=START - timedelta(seconds=1)),
        ),
    )
    found = revenue.measure([order(line("50", selling_plan="p"))], START, END, earlier=[old])

    # Twenty of goods came back in the window, and two beyond what they cost.
    assert found.figures == (figures(2800, 2800, earlier=2200),)
    alone = revenue.measure([], START, END, earlier=[old])
    assert alone.figures == (figures(0, orders=0, earlier=2200),)


@pytest.mark.parametrize(
    ("changed", "taken_off"),
    [
        ({"cancelled_at": MIDDLE}, 2000),
        ({"disputes": ("LOST",)}, 2000),
        ({"test": True}, 0),
        ({"transactions": (paid("100", gateway="gift_card", fees=False),)}, 0),
        ({"transactions": (paid("50"), paid("50", manual=True))}, 1000),
        ({"processed_at": START, "created_at": START}, 0),
    ],
)
def test_only_what_once_counted_can_be_taken_off(changed: dict[str, Any], taken_off: int) -> None:
    before = START - timedelta(days=3)
    old = order(
        line("100"),
        **{
            "processed_at": before,
            "created_at": before,
            "refunds": (refund("20"),),
            **changed,
        },
    )
    found = revenue.measure([], START, END, earlier=[old]).figures

    assert sum(each.refunds_of_earlier_orders30d or 0 for each in found) == taken_off


@pytest.mark.parametrize(
    ("changed", "proves"),
    [
        ({}, True),
        ({"cancelled_at": MIDDLE}, False),
        ({"created_at": MIDDLE + timedelta(days=300)}, False),
        ({"transactions": ()}, False),
        ({"transactions": (paid("9", manual=True),)}, False),
        ({"transactions": (paid("9"), back("9")), "current_total": Decimal(0)}, False),
    ],
)
def test_only_an_order_that_counts_says_how_old_a_shop_is(
    changed: dict[str, Any], proves: bool
) -> None:
    assert revenue.proves_age(order(line("9"), **changed)) is proves


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
        ({"transactions": (paid("9", manual=True),), "disputes": ("LOST",)}, "disputed"),
        ({"transactions": (paid("9", manual=True, gateway="cash"),)}, "manual_gateway"),
        ({"transactions": (paid("9", gateway="cash"), paid("1", manual=True))}, "unproven_payment"),
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
    third = order(line("0.005"), total=Decimal(3), transactions=(paid("1"),), tip=Decimal(0))

    assert earned(third, third, third) == {"USD": 1}


def test_refunds_of_more_than_a_fifth_are_flagged() -> None:
    calm = order(line("100"), transactions=(paid("100"), back("20")))
    wild = replace(calm, transactions=(paid("100"), back("20.01")))

    assert measured(calm).flags == ()
    assert measured(wild).flags == ("refund_rate",)


def test_an_order_paid_by_hand_and_refunded_raises_no_flag_of_refunds() -> None:
    by_hand = order(
        line("10"),
        transactions=(paid("10", manual=True, gateway="manual"), back("10", gateway="manual")),
    )

    assert measured(by_hand, order(line("100"))).flags == ()


def test_drafts_paid_through_a_processor_are_orders_like_others() -> None:
    draft = order(line("30"), source_name="shopify_draft_order")

    assert measured(draft, order(line("70"))).flags == ()
    assert earned(draft, order(line("70"))) == {"USD": 10000}


def test_exactly_a_fifth_that_is_not_proven_is_not_flagged() -> None:
    written = order(line("20"), has_checkout=False, transactions=(paid("20", fees=False),))

    assert measured(order(line("80")), written).flags == ()
    assert measured(order(line("79.99")), written).flags == ("unproven_share",)


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
    kind=st.sampled_from(["SALE", "CAPTURE", "REFUND", "AUTHORIZATION", "VOID"]),
    status=st.sampled_from(["SUCCESS", "PENDING", "FAILURE"]),
    test=st.booleans(),
    manual_payment_gateway=st.booleans(),
    amount=money,
    gateway=st.sampled_from(["shopify_payments", "paypal", "gift_card", "cash", None]),
    has_fees=st.booleans(),
)
lines = st.builds(
    PulledLine,
    st.decimals(min_value=-100, max_value=100_000, places=2),
    st.booleans(),
    st.sampled_from([None, "gid://plan/1"]),
)
moments = st.datetimes(datetime(2026, 2, 25), datetime(2026, 4, 5), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
refunds = st.builds(PulledRefund, at=moments, paid_back=money, goods=money, returned=money)
pulled = st.builds(
    PulledOrder,
    order_id=st.just("1"),
    processed_at=moments,
    created_at=st.none() | moments,
    currency=st.sampled_from(["USD", "JPY", "KWD"]),
    test=st.booleans(),
    cancelled_at=st.none() | moments,
    source_name=st.sampled_from([None, "web", "shopify_draft_order", "pos"]),
    has_checkout=st.booleans(),
    disputes=st.lists(st.sampled_from(["WON", "LOST"]), max_size=1).map(tuple),
    total=money,
    current_total=money,
    tax=money,
    shipping=money,
    tip=money,
    duties=money,
    duties_included=st.booleans(),
    additional_fees=money,
    lines=st.lists(lines, max_size=4).map(tuple),
    transactions=st.lists(payments, max_size=3).map(tuple),
    refunds=st.lists(refunds, max_size=2).map(tuple),
)
good = st.builds(
    lambda sold, share, given: order(
        sold,
        transactions=(paid(str(share)), *([back(str(given))] if given else [])) if share else (),
        refunds=(refund(str(given)),) if given else (),
    ),
    lines,
    money,
    st.just(Decimal(0)) | money,
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
def test_no_order_is_worth_more_than_the_money_that_stayed(orders: list[PulledOrder]) -> None:
    for sold in orders:
        found = revenue.paid_of(sold)
        with localcontext(revenue.PRECISE):
            assert revenue.worth(sold, found)[0] <= max(Decimal(0), found.proven - found.given_back)


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


def test_a_payment_of_nothing_is_none() -> None:
    assert skipped(order(line("9"), transactions=(paid("0"),))) == {"unpaid": 1}


def test_a_tip_is_taken_off_the_lines_whatever_the_totals_say() -> None:
    sold = order(line("100"), line("20"), tip=Decimal(20), total=Decimal(500))

    assert earned(replace(sold, transactions=(paid("500"),))) == {"USD": 10000}


@pytest.mark.parametrize(
    ("plan", "partner_development", "is_development"),
    [
        ("Basic", False, False),
        (" plus ", False, False),
        ("Trial", False, True),
        ("Plus", True, True),
    ],
)
def test_a_plan_that_sells_nothing_and_a_partners_shop_are_development(
    plan: str, partner_development: bool, is_development: bool
) -> None:
    facts = ShopFacts(
        shop_domain="a.myshopify.com",
        name="A",
        currency="USD",
        plan=plan,
        partner_development=partner_development,
        primary_domain=None,
        created_at=START,
        timezone="UTC",
        scopes=(),
    )
    assert revenue.is_development(facts) is is_development


def test_refunds_are_asked_for_only_where_they_can_change_what_an_order_is_worth() -> None:
    part = replace(order(line("100")), transactions=(paid("100"), back("10")))
    nothing_kept = replace(part, transactions=(paid("100"), back("100")))
    all_returned = replace(part, current_total=Decimal(0))
    unproven = replace(part, transactions=(paid("100", gateway="manual"), back("10")))
    cancelled = replace(part, cancelled_at=MIDDLE)

    assert revenue.depends_on_refunds(part)
    for each in (nothing_kept, all_returned, unproven, cancelled):
        assert not revenue.depends_on_refunds(each)
        assert earned(replace(each, refunds=(refund("10"),))) == earned(each)
    assert earned(replace(part, refunds=(refund("10"),))) == {"USD": 9000}
