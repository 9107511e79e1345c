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
    counted,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopSales:
    """What a shop sells in all: its best seller, and what a month comes to."""

    best_seller: Figure
    best_seller_title: str | None
    monthly_revenue: Figure


def of_product(
    product: TrackedProduct, times: Sequence[datetime], moves: Sequence[StockMove]
) -> Figure:
    """Tell how fast a product sells, a day."""
    if product.shows_stock:
        return of_quantities(intervals_of(product, times, moves))
    seen = intervals_of(product, times, [one for one in moves if one.sold_out])
    return of_falls(sum(one.fell > 0 for one in seen), len(seen), sum(one.days for one in seen))


def intervals_of(
    product: TrackedProduct, times: Sequence[datetime], moves: Iterable[StockMove]
) -> list[Interval]:
    """Lay out what became of a product between each two snapshots since it is known."""
    known = [one for one in times if one >= product.first_seen_at]
    intervals = [
        Interval(days=(after - before).total_seconds() / SECONDS_A_DAY)
        for before, after in itertools.pairwise(known)
    ]
    for move in moves:
        # What a shop shows as a number is told by that alone.
        if move.sold_out and product.shows_stock:
            continue
        place = bisect_left(known, move.at) - 1
        if 0 <= place < len(intervals):
            was = intervals[place]
            intervals[place] = replace(
                was,
                fell=was.fell + (1 if move.sold_out else move.fell),
                is_restocked=was.is_restocked or move.rose > 0,
            )
    return intervals


def of_shop(
    products: Sequence[TrackedProduct], times: Sequence[datetime], moves: Iterable[StockMove]
) -> ShopSales:
    """Tell what a shop sells; the products that never moved sell nothing."""
    if len(times) < 2:  # noqa: PLR2004 - an interval has two ends
        none = unknown("It takes two snapshots, six hours apart, to see what is sold.")
        return ShopSales(best_seller=none, best_seller_title=None, monthly_revenue=none)
    by_product = defaultdict[int, list[StockMove]](list)
    for move in moves:
        by_product[move.product_id].append(move)
    moved = [one for one in products if one.id in by_product]
    figures = [(of_product(one, times, by_product[one.id]), one.title) for one in moved]
    sold = [(figure, title) for figure, title in figures if (figure.value or 0) > 0]
    if sold:
        best, title = max(sold, key=lambda one: one[0].value or 0)
        return ShopSales(
            best_seller=best,
            best_seller_title=title,
            monthly_revenue=_revenue(products, times, by_product),
        )
    shown = next((one for one in products if one.shows_stock), None)
    if shown is None:
        none = unknown("The shop shows no stock, and nothing was seen to sell out.", len(times) - 1)
        return ShopSales(best_seller=none, best_seller_title=None, monthly_revenue=none)
    still = of_product(shown, times, ())
    return ShopSales(
        best_seller=still,
        best_seller_title=None,
        monthly_revenue=_revenue(products, times, by_product),
    )


def _revenue(
    products: Sequence[TrackedProduct],
    times: Sequence[datetime],
    moves: Mapping[int, Sequence[StockMove]],
) -> Figure:
    """Tell what is sold in thirty days, in units of the shop's currency, by the stock that it shows."""
    priced = [one for one in products if one.shows_stock and one.price is not None]
    if not priced:
        return unknown("No product shows both its stock and its price.", len(times) - 1)
    whole = [
        Interval(days=(after - before).total_seconds() / SECONDS_A_DAY)
        for before, after in itertools.pairwise(times)
    ]
    for product in priced:
        some = intervals_of(product, times, moves.get(product.id, ()))
        kept, first = set(map(id, counted(some))), len(whole) - len(some)
        for place, one in enumerate(some, first):
            if one.fell and id(one) in kept:
                earned = whole[place].fell + one.fell * (product.price or 0.0)
                whole[place] = replace(whole[place], fell=earned)
    figure = of_quantities(whole)
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
