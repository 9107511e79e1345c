"""What a shop sells, told from how its stock moved between snapshots."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.storefront.observed import Provenance
from tolsey.actors.storefront.sales import (
    SnapshotTimes,
    StockMove,
    TrackedProduct,
    of_product,
    of_shop,
    sightings,
)
from tolsey.actors.storefront.velocity import Interval, of_quantities

AT = datetime(2026, 6, 1, tzinfo=UTC)
TIMES = [AT + timedelta(hours=6 * n) for n in range(41)]
"""Ten days of four snapshots."""


def tracked(id: int = 1, **given: object) -> TrackedProduct:
    told = {"title": f"Product {id}", "first_seen_at": AT, "shows_stock": True, "price": 20.0}
    return TrackedProduct(id=id, **{**told, **given})  # type: ignore[arg-type]


def move(place: int, product_id: int = 1, **given: object) -> StockMove:
    return StockMove(product_id=product_id, at=TIMES[place], **given)  # type: ignore[arg-type]


def test_the_best_seller_is_named_and_a_month_is_told_from_all() -> None:
    products = [tracked(1), tracked(2), tracked(3, price=None)]
    moves = [move(n, 1, fell=1) for n in range(1, 41, 4)] + [move(8, 2, fell=30)]
    told = of_shop(products, TIMES, moves)
    assert told.best_seller_title == "Product 2"
    assert (told.best_seller.value, told.best_seller.n) == (3.0, 40)
    assert told.monthly_revenue.value == pytest.approx((10 + 30) * 20.0 / 10 * 30)
    assert told.monthly_revenue.method is Provenance.ESTIMATED


def test_a_dear_product_that_sells_seldom_is_no_correction_of_the_shop() -> None:
    """Ten sales of 20 and one of 3,000, in ten days, come to 9,600 in thirty."""
    products = [tracked(1), tracked(2, price=3_000.0)]
    moves = [*(move(n, 1, fell=1) for n in range(1, 41, 4)), move(7, 2, fell=1)]
    assert of_shop(products, TIMES, moves).monthly_revenue.value == pytest.approx(9_600.0)


def test_time_before_a_product_was_seen_is_no_time_in_which_it_sold_nothing() -> None:
    late = of_product(tracked(first_seen_at=TIMES[20]), SnapshotTimes(TIMES), [move(22, fell=10)])
    assert (late.value, late.n) == (2.0, 20)
    never = of_product(tracked(first_seen_at=TIMES[-1]), SnapshotTimes(TIMES), [])
    assert never.value is None


def test_one_snapshot_tells_nothing_and_says_so() -> None:
    assert "two snapshots" in of_shop([tracked()], TIMES[:1], []).best_seller.reason


def test_a_product_that_shows_no_number_is_told_by_how_often_it_sold_out() -> None:
    hidden = tracked(shows_stock=False, price=None)
    told = of_shop([hidden], TIMES, [move(n, sold_out=True) for n in (3, 17, 30)])
    assert (told.best_seller.method, told.best_seller.n) == (Provenance.ESTIMATED, 40)
    assert told.monthly_revenue.value is None


def test_moves_of_one_interval_are_one_fall_and_a_restock_hides_it() -> None:
    moves = [move(5, fell=2), move(5, fell=3), move(9, fell=4), move(9, rose=1)]
    seen = sightings(tracked(), SnapshotTimes(TIMES), moves)
    assert {place: (one.fell, one.is_restocked) for place, one in seen.moved.items()} == {
        4: (5, False),
        8: (4, True),
    }
    assert (seen.still, seen.still_days) == (38, 9.5)


def test_intervals_in_which_nothing_moved_count_as_if_each_were_laid_out() -> None:
    chance = random.Random(22)  # noqa: S311 - nothing secret
    for _ in range(200):
        moved = [
            Interval(
                days=chance.choice((0.25, 0.5, 1.0)),
                fell=chance.choice((0, 1, 3, 90)),
                is_restocked=chance.random() < 0.2,
            )
            for _ in range(chance.randrange(6))
        ]
        still = [Interval(days=0.25)] * chance.randrange(1, 40)
        short = of_quantities(moved, still=len(still), still_days=0.25 * len(still))
        whole = of_quantities([*moved, *still])
        assert short.n == whole.n
        for name in ("value", "low", "high"):
            assert getattr(short, name) == pytest.approx(getattr(whole, name))
