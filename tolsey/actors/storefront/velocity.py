"""How fast products sell, by what snapshots of their stock say, and how sure that is.

rules/intelligence#velocity. A moved `updated_at` is no sale: only stock that fell is, or a count of how often
it did. Every figure says its interval at 95 in 100, by which method, and of how many intervals it is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import median
from typing import Final

from tolsey.actors.storefront.observed import Provenance

Z: Final = 1.96
"""Of 95 in 100, on both sides."""
CORRECTION: Final = 10.0
"""A fall of more than so many times the usual one is the merchant's own correction."""
FEWEST_FALLS: Final = 3
"""What is usual, fewer do not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What happened to a product's stock between two snapshots."""

    days: float
    fell: float = 0.0
    """By how much stock went down, summed over variants."""
    is_restocked: bool = False
    """Whether stock of any variant went up: what was sold meanwhile cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its interval; no `high` where only a lower bound is known."""

    value: float | None
    low: float | None
    high: float | None
    method: Provenance
    n: int
    reason: str = ""


def unknown(reason: str, n: int = 0) -> Figure:
    """Say that a figure cannot be given, and why."""
    return Figure(
        value=None, low=None, high=None, method=Provenance.UNAVAILABLE, n=n, reason=reason
    )


def of_quantities(intervals: Sequence[Interval]) -> Figure:
    """Tell units a day of a product whose stock is shown as a number.

    The falls are summed; intervals with a restock, and falls that are corrections, count neither as sales
    nor as time. The interval is Byar's for a count, widened by how unevenly the falls came.
    """
    kept = counted(intervals)
    days = sum(one.days for one in kept)
    if days <= 0:
        return unknown("Stock is shown, but no interval between two snapshots can be used yet.")
    units = sum(one.fell for one in kept)
    rate, spread = units / days, _dispersion(kept, units / days)
    seen = units / spread
    return Figure(
        value=rate,
        low=_byar_low(seen) * spread / days,
        high=_byar_high(seen) * spread / days,
        method=Provenance.OBSERVED,
        n=len(kept),
    )


def of_falls(fell: int, n: int, days: float) -> Figure:
    """Tell falls a day of a product that only says whether it is there: `fell` of `n` intervals saw it go.

    Arrivals at an even rate leave an interval of length D empty with probability exp(-rate D); Wilson's
    interval on the share of those that are not empty is carried through. All of them: a lower bound only.
    """
    if n == 0 or fell == 0:
        return unknown("The shop shows no stock, and nothing was seen to sell out.", n)
    each = days / n
    low, high = _wilson(fell, n)
    is_bound = fell == n
    return Figure(
        value=None if is_bound else -log(1 - fell / n) / each,
        low=-log(1 - low) / each,
        high=None if is_bound or high >= 1 else -log(1 - high) / each,
        method=Provenance.ESTIMATED,
        n=n,
        reason="It counts how often a product went out of stock, which is less than what is sold.",
    )


def counted(intervals: Sequence[Interval]) -> list[Interval]:
    """Take the intervals in which what was sold can be told: no restock, no correction."""
    usual = _usual_fall(intervals)
    most = None if usual is None else CORRECTION * usual
    return [
        one
        for one in intervals
        if not one.is_restocked and (most is None or one.fell / one.days <= most)
    ]


def _usual_fall(intervals: Sequence[Interval]) -> float | None:
    falls = [one.fell / one.days for one in intervals if one.fell > 0 and not one.is_restocked]
    return median(falls) if len(falls) >= FEWEST_FALLS else None


def _dispersion(intervals: Sequence[Interval], rate: float) -> float:
    """Say how many times more unevenly the falls came than single sales at an even rate would."""
    if rate <= 0 or len(intervals) < 2:  # noqa: PLR2004 - one has no spread
        return 1.0
    squares = sum((one.fell - rate * one.days) ** 2 / (rate * one.days) for one in intervals)
    return max(1.0, squares / (len(intervals) - 1))


def _byar_low(count: float) -> float:
    if count <= 0:
        return 0.0
    return count * max(0.0, 1 - 1 / (9 * count) - Z / (3 * sqrt(count))) ** 3


def _byar_high(count: float) -> float:
    more = count + 1
    return float(more * (1 - 1 / (9 * more) + Z / (3 * sqrt(more))) ** 3)


def _wilson(hits: int, n: int) -> tuple[float, float]:
    share, square = hits / n, Z * Z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = Z * sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(0.0, middle - half), min(1.0, middle + half)
