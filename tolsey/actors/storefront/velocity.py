"""How fast products sell, by what snapshots of their stock say, and how sure that is.

rules/intelligence#velocity. A moved `updated_at` is no sale: only stock that fell is, or a count of how often
it did. Every figure says its interval at 95 in 100, by which method, and of how many intervals it is made.
"""

from collections.abc import Collection, Iterable, Sequence
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


def of_quantities(
    moved: Collection[Interval], *, still: int = 0, still_days: float = 0.0
) -> Figure:
    """Tell units a day of a product whose stock is shown as a number.

    The falls are summed; intervals with a restock, and falls that are corrections, count neither as sales
    nor as time. Beside those in which it moved, there may be intervals in which it stood `still`, of so
    many days in all.
    """
    most = most_a_day(moved)
    kept = [one for one in moved if is_counted(one, most)]
    return of_counted(kept, still=still, still_days=still_days)


def of_counted(kept: Sequence[Interval], *, still: int = 0, still_days: float = 0.0) -> Figure:
    """Tell what fell a day in intervals that all count, as `of_quantities` does.

    The interval is Byar's for a count, widened by how unevenly the falls came.
    """
    days = sum(one.days for one in kept) + still_days
    if days <= 0:
        return unknown("Stock is shown, but no interval between two snapshots can be used yet.")
    units = sum(one.fell for one in kept)
    rate = units / days
    spread = _dispersion(kept, rate, still=still, still_days=still_days)
    seen = units / spread
    return Figure(
        value=rate,
        low=_byar_low(seen) * spread / days,
        high=_byar_high(seen) * spread / days,
        method=Provenance.OBSERVED,
        n=len(kept) + still,
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


def most_a_day(moved: Iterable[Interval]) -> float | None:
    """Say how much may fall in a day before it is a correction; None where too few falls say what is usual."""
    falls = [one.fell / one.days for one in moved if one.fell > 0 and not one.is_restocked]
    return CORRECTION * median(falls) if len(falls) >= FEWEST_FALLS else None


def is_counted(one: Interval, most: float | None) -> bool:
    """Whether what was sold in an interval can be told: no restock, no correction."""
    return not one.is_restocked and (most is None or one.fell / one.days <= most)


def _dispersion(kept: Sequence[Interval], rate: float, *, still: int, still_days: float) -> float:
    """Say how many times more unevenly the falls came than single sales at an even rate would."""
    if rate <= 0 or len(kept) + still < 2:  # noqa: PLR2004 - one has no spread
        return 1.0
    # Of an interval in which nothing fell, (0 - rate days)² / (rate days) is rate days.
    squares = sum((one.fell - rate * one.days) ** 2 / (rate * one.days) for one in kept)
    return max(1.0, (squares + rate * still_days) / (len(kept) + still - 1))


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
