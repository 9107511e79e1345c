"""What a shop sells, told from what became of its stock between snapshots."""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tolsey.actors.storefront.observed import Provenance
from tolsey.actors.storefront.velocity import (
    Figure,
    Interval,
    is_counted,
    most_a_day,
    of_counted,
    of_falls,
    of_quantities,
    unknown,
)

SECONDS_A_DAY: Final = 86_400.0
MONTH_DAYS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedProduct:
    """A product whose sales are told."""

    id: int
    title: str
    first_seen_at: datetime
    shows_stock: bool
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StockMove:
    """How a variant's stock moved: by how many it fell or rose, or that it sold out."""

    product_id: int
    at: datetime
    fell: int = 0
    rose: int = 0
    sold_out: bool = False


class SnapshotTimes:
    """A shop's snapshots in their order, and how many days lie between them."""

    def __init__(self, times: Sequence[datetime]) -> None:
        self.times = times
        self.days = [
            (after - before).total_seconds() / SECONDS_A_DAY
            for before, after in itertools.pairwise(times)
        ]
        self.days_until = [0.0, *itertools.accumulate(self.days)]
        """Days from the first snapshot to each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """What became of a product between snapshots: the intervals in which its stock moved, by their place, and how much time it did not.

    Most products move seldom: what a shop sells costs as much to tell as what moved there, not as what it has.
    """

    moved: Mapping[int, Interval]
    still: int
    still_days: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopSales:
    """What a shop sells in all: its best seller, and what a month comes to."""

    best_seller: Figure
    best_seller_title: str | None
    monthly_revenue: Figure


def of_product(
    product: TrackedProduct, seen_at: SnapshotTimes, moves: Iterable[StockMove]
) -> Figure:
    """Tell how fast a product sells, a day."""
    if product.shows_stock:
        seen = sightings(product, seen_at, moves)
        return of_quantities(seen.moved.values(), still=seen.still, still_days=seen.still_days)
    seen = sightings(product, seen_at, [one for one in moves if one.sold_out])
    days = sum(one.days for one in seen.moved.values()) + seen.still_days
    fell = sum(one.fell > 0 for one in seen.moved.values())
    return of_falls(fell, len(seen.moved) + seen.still, days)


def sightings(
    product: TrackedProduct, seen_at: SnapshotTimes, moves: Iterable[StockMove]
) -> Sightings:
    """Lay out what became of a product between each two snapshots since it is known."""
    first, last = bisect_left(seen_at.times, product.first_seen_at), len(seen_at.days)
    moved = dict[int, Interval]()
    for move in moves:
        # What a shop shows as a number is told by that alone.
        if move.sold_out and product.shows_stock:
            continue
        place = bisect_left(seen_at.times, move.at) - 1
        if first <= place < last:
            was = moved.get(place)
            moved[place] = Interval(
                days=seen_at.days[place],
                fell=(was.fell if was else 0.0) + (1 if move.sold_out else move.fell),
                is_restocked=move.rose > 0 or (was is not None and was.is_restocked),
            )
    still = max(0, last - first) - len(moved)
    since = seen_at.days_until[-1] - seen_at.days_until[min(first, last)]
    still_days = since - sum(one.days for one in moved.values()) if still else 0.0
    return Sightings(moved=moved, still=still, still_days=still_days)


def of_shop(
    products: Sequence[TrackedProduct], times: Sequence[datetime], moves: Iterable[StockMove]
) -> ShopSales:
    """Tell what a shop sells; the products that never moved sell nothing."""
    if len(times) < 2:  # noqa: PLR2004 - an interval has two ends
        none = unknown("It takes two snapshots, six hours apart, to see what is sold.")
        return ShopSales(best_seller=none, best_seller_title=None, monthly_revenue=none)
    seen_at = SnapshotTimes(times)
    by_product = defaultdict[int, list[StockMove]](list)
    for move in moves:
        by_product[move.product_id].append(move)
    moved = [one for one in products if one.id in by_product]
    figures = [(of_product(one, seen_at, by_product[one.id]), one.title) for one in moved]
    sold = [(figure, title) for figure, title in figures if (figure.value or 0) > 0]
    if sold:
        best, title = max(sold, key=lambda one: one[0].value or 0)
        return ShopSales(
            best_seller=best,
            best_seller_title=title,
            monthly_revenue=_revenue(products, seen_at, by_product),
        )
    shown = next((one for one in products if one.shows_stock), None)
    if shown is None:
        none = unknown("The shop shows no stock, and nothing was seen to sell out.", len(times) - 1)
        return ShopSales(best_seller=none, best_seller_title=None, monthly_revenue=none)
    still = of_product(shown, seen_at, ())
    return ShopSales(
        best_seller=still,
        best_seller_title=None,
        monthly_revenue=_revenue(products, seen_at, by_product),
    )


def _revenue(
    products: Sequence[TrackedProduct],
    seen_at: SnapshotTimes,
    moves: Mapping[int, Sequence[StockMove]],
) -> Figure:
    """Tell what is sold in thirty days, in units of the shop's currency, by the stock that it shows."""
    priced = [one for one in products if one.shows_stock and one.price is not None]
    if not priced:
        return unknown("No product shows both its stock and its price.", len(seen_at.days))
    earned = [0.0] * len(seen_at.days)
    for product in priced:
        if product.id not in moves:
            continue
        moved = sightings(product, seen_at, moves[product.id]).moved
        most = most_a_day(moved.values())
        for place, one in moved.items():
            if is_counted(one, most):
                earned[place] += one.fell * (product.price or 0.0)
    days = zip(seen_at.days, earned, strict=True)
    # Corrections are taken out of each product: a dear one that sells seldom is none of the shop's.
    figure = of_counted([Interval(days=one, fell=sold) for one, sold in days])
    if figure.value is None:
        return figure
    return replace(
        figure,
        value=figure.value * MONTH_DAYS,
        low=(figure.low or 0.0) * MONTH_DAYS,
        high=None if figure.high is None else figure.high * MONTH_DAYS,
        method=Provenance.ESTIMATED,
        reason="What was sold of the stock that is shown, at its price; not calibrated by verified shops.",
    )
