"""How the parts of an order add up: movements, lines and totals, each of them more than once."""

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.actors.listing.orders import END, START, back, line, order, paid, refund
from tolsey.actors.listing.verification import revenue
from tolsey.actors.listing.verification.revenue import OrderPayments, OrderTally
from tolsey.storage.records.selling.revenue import Measure, PulledOrder

MICROSECOND = timedelta(microseconds=1)
CENT = Decimal("0.01")


def test_every_movement_of_an_order_is_added_up() -> None:
    payments = (paid("30"), paid("20"), paid("7", gateway="cash", manual=True))
    returns = (back("4"), back("5", status="PENDING"), back("2", gateway="cash", manual=True))
    found = revenue.paid_of(order(line("57"), transactions=(*payments, *returns)))

    assert found == OrderPayments(
        payments=list(payments),
        taken=Decimal(57),
        proven=Decimal(50),
        given_back=Decimal(9),
        going_back=Decimal(11),
    )


def test_a_return_may_be_told_before_the_payment() -> None:
    found = revenue.paid_of(order(line("10"), transactions=(back("4"), paid("10"))))

    back_again = (found.given_back, found.going_back)
    assert (found.proven, *back_again) == (Decimal(10), Decimal(4), Decimal(4))


def test_the_totals_are_without_everything_that_is_not_goods() -> None:
    bought = order(
        *(line("50"), line("3", is_gift_card=True), line("4", is_gift_card=True)),
        current_total=Decimal(100),
        **{
            name: Decimal(amount)
            for name, amount in (
                *(("tax", 1), ("shipping", 2), ("tip", 4)),
                *(("duties", 8), ("additional_fees", 16)),
            )
        },
    )

    assert revenue.by_totals(bought) == 100 - 31 - 7


def worth(bought: PulledOrder) -> tuple[float, float]:
    sold, recurring = revenue.worth(bought, revenue.paid_of(bought))
    return float(sold), float(recurring)


def test_included_duties_are_taken_off_the_lines() -> None:
    asked = {"total": Decimal(200), "transactions": (paid("200"),), "duties": Decimal(8)}

    assert worth(order(line("100"), duties_included=True, **asked))[0] == 92
    assert worth(order(line("100"), **asked))[0] == 100


def test_lines_on_plans_are_added_up_and_are_never_more_than_the_order() -> None:
    plans = (line("30", selling_plan="a"), line("20", selling_plan="b"), line("50"))

    assert worth(order(*plans)) == (100, 50)
    assert worth(order(*plans, line("10", selling_plan="c", is_gift_card=True)))[1] == 50
    small = order(line("0.25", selling_plan="a"), line("0.25"))
    assert worth(small) == (0.5, 0.25)
    returned = order(line("10", selling_plan="a"), line("-4"), total=Decimal(6))
    assert worth(returned) == (6, 6)
    undone = order(line("10", selling_plan="a"), line("-10"), total=Decimal(5))
    assert worth(undone) == (0, 0)


def test_the_share_that_is_proven_is_at_most_all() -> None:
    bought = order(line("10"), transactions=(paid("25"),))

    assert revenue.share_proven(bought, revenue.paid_of(bought)) == 1
    nothing = order(transactions=(paid("25"),))
    assert revenue.share_proven(nothing, revenue.paid_of(nothing)) == 0


@pytest.mark.parametrize(("kept", "counts"), [("0", False), ("0.01", True), ("0.99", True)])
def test_a_cent_that_is_kept_is_kept(kept: str, counts: bool) -> None:
    bought = order(line("10"), transactions=(paid("10"), back(str(10 - Decimal(kept)))))

    assert revenue.depends_on_refunds(bought) is counts
    assert revenue.proves_age(bought) is counts


def test_a_window_is_the_thirty_days_before_its_end() -> None:
    assert revenue.window_of(END) == (START, END)


def returned_at(*moments: timedelta) -> Measure:
    """Measure what earlier orders gave back, each a dollar at a moment from the window's start."""
    earlier = [
        order(
            line("10"),
            currency="JPY",
            processed_at=START - timedelta(days=1),
            created_at=START - timedelta(days=1),
            refunds=(refund("1", goods="1", at=START + moment),),
        )
        for moment in moments
    ]
    return revenue.measure([order(line("100"), currency="JPY")], START, END, earlier)


def test_what_earlier_orders_gave_back_is_added_up_within_the_window() -> None:
    (found,) = returned_at(
        -MICROSECOND, timedelta(0), END - START - MICROSECOND, END - START
    ).figures

    assert (found.revenue30d, found.refunds_of_earlier_orders30d) == (98, 2)


def test_what_recurs_is_told_in_the_minor_units_of_its_currency() -> None:
    bought = order(line("100", selling_plan="a"), currency="JPY")
    (found,) = revenue.measure([bought], START, END).figures

    assert found.mrr == 100


def test_sums_hold_more_digits_than_a_plain_one() -> None:
    ago = START - timedelta(days=1)
    large = order(line("20000"), processed_at=ago, created_at=ago, refunds=(refund("20000"),))
    (found,) = revenue.measure([], START, END, [large]).figures

    assert found.refunds_of_earlier_orders30d == 2_000_000
    assert revenue.proves_age(order(line("20000")))
    assert revenue.minor_units(Decimal(10**17), "USD") == 10**19


def test_what_recurs_is_added_up_over_orders() -> None:
    plans = [order(line(price, selling_plan="a")) for price in ("10", "20")]
    (found,) = revenue.measure(plans, START, END).figures

    assert (found.revenue30d, found.mrr) == (3_000, 3_000)


def test_two_currencies_are_a_flag() -> None:
    both = [order(line("1")), order(line("1"), currency="EUR")]

    assert revenue.measure(both, START, END).flags == ("multiple_currencies",)
    assert revenue.measure(both[:1], START, END).flags == ()


def test_what_was_given_back_is_added_up_over_orders_and_those_paid_by_hand_are_taken() -> None:
    tally = OrderTally(start=START, end=END)
    for amount in ("2", "3"):
        tally.add(order(line("10"), transactions=(paid("10"), back(amount))))
    tally.add(order(line("4"), transactions=(paid("4", gateway="cash", manual=True),)))

    sums = tally.sums["USD"]
    assert [int(each) for each in (sums.taken, sums.proven, sums.returned)] == [24, 20, 5]
    assert tally.skipped == {"manual_gateway": 1}
    assert sums.orders == 2


def test_amounts_are_exact_beyond_the_digits_of_a_plain_sum() -> None:
    large = Decimal("123456789012345.678901")
    third = order(line(str(large)), total=3 * large, transactions=(paid(str(large)),))

    assert worth_in_context(third) == revenue.minor_units(large / 3, "USD")


def worth_in_context(bought: PulledOrder) -> int:
    (found,) = revenue.measure([bought], START, END).figures
    return found.revenue30d


def test_an_order_that_is_processed_at_the_start_is_no_earlier_one() -> None:
    tally = OrderTally(start=START, end=END)
    tally.add_earlier(order(line("10"), processed_at=START, refunds=(refund("1", goods="1"),)))

    assert tally.sums == {}
