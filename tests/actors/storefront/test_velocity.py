"""Sales are told from stock with an interval that holds, and from nothing else."""

import random
from dataclasses import replace
from math import exp

import pytest

from tolsey.actors.storefront.observed import Provenance
from tolsey.actors.storefront.velocity import Interval, of_falls, of_quantities

SHOPS, DAYS, SHARE = 200, 60, 0.9
SIZES = (1, 1, 1, 1, 2, 2, 3)


def test_stock_that_never_moved_sells_nothing_and_says_how_much_it_might() -> None:
    still = of_quantities([Interval(days=1.0)] * 30)
    assert (still.value, still.low, still.method, still.n) == (0.0, 0.0, Provenance.OBSERVED, 30)
    assert still.high is not None
    assert 0.1 < still.high < 0.14  # some 3.7 in 30 days


def test_falls_are_summed_and_a_restock_is_neither_a_sale_nor_time() -> None:
    intervals = [Interval(days=1.0, fell=2), Interval(days=1.0, fell=9, is_restocked=True)]
    sold = of_quantities([*intervals, Interval(days=2.0, fell=4)])
    assert (sold.value, sold.n) == (2.0, 2)


def test_a_fall_of_ten_times_the_usual_is_a_correction() -> None:
    usual = [Interval(days=1.0, fell=one) for one in (2, 1, 2, 3, 2)]
    corrected = of_quantities([*usual, Interval(days=1.0, fell=400)])
    assert corrected == of_quantities(usual)
    assert of_quantities([*usual, Interval(days=1.0, fell=19)]).value == pytest.approx(29 / 6)


def test_only_intervals_that_cannot_be_used_give_no_figure() -> None:
    assert of_quantities([]).method is Provenance.UNAVAILABLE
    assert of_quantities([Interval(days=1.0, is_restocked=True)]).value is None


def test_a_shop_that_shows_no_stock_and_never_sold_out_has_no_velocity() -> None:
    none = of_falls(0, 40, 40.0)
    assert (none.value, none.high, none.method) == (None, None, Provenance.UNAVAILABLE)
    assert none.reason


def test_a_share_of_intervals_with_a_fall_carries_wilsons_interval_through() -> None:
    some = of_falls(10, 40, 20.0)
    assert some.value is not None
    assert some.high is not None
    assert exp(-some.value * 0.5) == pytest.approx(0.75)
    # Wilson's interval of 10 in 40 is 14.19 to 40.19 in 100.
    assert 1 - exp(-(some.low or 0) * 0.5) == pytest.approx(0.1419, abs=1e-4)
    assert 1 - exp(-some.high * 0.5) == pytest.approx(0.4019, abs=1e-4)
    assert some.method is Provenance.ESTIMATED


def test_a_fall_in_every_interval_gives_a_lower_bound_only() -> None:
    every = of_falls(12, 12, 12.0)
    assert (every.value, every.high) == (None, None)
    assert every.low is not None
    assert every.low > 0


def simulated(chance: random.Random) -> tuple[list[Interval], float, float]:
    """Let a product sell for sixty days, and look at its stock as often as a scanner would.

    Answers what was seen, what was sold a day, and the rate behind it: by orders of one to three, more on some days of the
    week, with restocks, corrections of the merchant, scans that failed and hours that vary.
    """
    rate = exp(chance.gauss(0.2, 1.1))
    stock, reorder = 400, 60
    sold_in_all, seen, hour = 0, [], 0
    gap = chance.choice((6, 8, 12, 24))
    while hour < DAYS * 24:
        hours = min(gap * (1 if chance.random() > 0.1 else 3), DAYS * 24 - hour)
        before, restocked = stock, False
        for one in range(hour, hour + hours):
            busy = 1.6 if (one // 24) % 7 in (4, 5) else 0.76
            for _ in range(_poisson(chance, rate * busy / 24)):
                size = min(stock, chance.choice(SIZES))
                stock -= size
                sold_in_all += size
            if stock < reorder and chance.random() < 0.2:
                stock, restocked = stock + 400, True
        if chance.random() < 0.003:
            stock = max(0, stock - 300)
        fell = max(0, before - stock)
        seen.append(Interval(days=hours / 24, fell=fell, is_restocked=restocked and stock > before))
        hour += hours
    return seen, sold_in_all / DAYS, rate * sum(SIZES) / len(SIZES)


def _poisson(chance: random.Random, mean: float) -> int:
    bound, count, product = exp(-mean), 0, chance.random()
    while product > bound:
        count += 1
        product *= chance.random()
    return count


def test_the_true_velocity_lies_in_the_interval_of_nine_shops_in_ten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chance, held, lasting = random.Random(22), 0, 0  # noqa: S311 - nothing secret
    for _ in range(SHOPS):
        seen, truth, rate = simulated(chance)
        figure = of_quantities(seen)
        assert figure.low is not None
        assert figure.high is not None
        held += figure.low <= truth <= figure.high
        lasting += figure.low <= rate <= figure.high
    with capsys.disabled():
        print(  # noqa: T201 - what the test is for
            f"\nin the interval over {DAYS} days: what was sold of {held} of {SHOPS} shops,"
            f" the lasting rate of {lasting}"
        )
    assert held >= SHARE * SHOPS
    assert lasting >= SHARE * SHOPS


def test_the_interval_is_no_wider_than_the_figure_is_worth() -> None:
    steady = of_quantities([Interval(days=1.0, fell=10)] * 60)
    assert steady.low is not None
    assert steady.high is not None
    assert steady.high / steady.low < 1.2
    # An interval that is half as long says half as much of the same rate.
    halves = [replace(Interval(days=0.5, fell=5)) for _ in range(120)]
    assert of_quantities(halves).value == steady.value == 10
