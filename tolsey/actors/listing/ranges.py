"""The ranges that stand for metrics whose seller does not show them as they are.

The steps are the same for everyone, so that no seller chooses where a range begins (rules/revenue#what-is-shown).
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import orjson

from tolsey.storage.records.money.currencies import EXPONENTS
from tolsey.storage.records.selling.listing import Visibility

METRICS: Final = ("revenue30d", "mrr", "subscribers")
"""What a seller decides about."""
DERIVED: Final = {"annualised": "revenue30d", "arr": "mrr"}
"""What is twelve times another metric, and is shown as that one is (rules/revenue#recurring-and-annualised)."""
MONTHS: Final = 12

STEPS: Final = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(15, 2))
"""Where ranges begin, times every power of ten."""
SMALLEST_AMOUNT: Final = 1_000
"""The first range of an amount ends here, in whole units of its currency."""
SMALLEST_COUNT: Final = 10
"""The first range of a count ends here."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a metric lies in: at least `low` and less than `high`."""

    low: int
    high: int

    def times(self, factor: int) -> "Range":
        """Give the range of a multiple."""
        return Range(self.low * factor, self.high * factor)


def shown_as(visibility: str) -> dict[str, Visibility]:
    """Say of every metric how it is shown, from what a listing keeps as JSON text."""
    chosen: Mapping[str, str] = orjson.loads(visibility)
    return {name: Visibility(chosen.get(name, Visibility.EXACT)) for name in METRICS}


def range_of(metric: str, value: int, currency: str | None) -> Range:
    """Give the range that a metric lies in; amounts are minor units of the currency."""
    if metric == "subscribers":
        return _range(value, SMALLEST_COUNT, 1)
    unit = 10 ** EXPONENTS.get(currency or "", 2)
    return _range(value, SMALLEST_AMOUNT, unit)


def _range(value: int, smallest: int, unit: int) -> Range:
    """Find the two steps around a value."""
    if value < smallest * unit:
        return Range(0, smallest * unit)
    power = 10 ** (len(str(value // unit)) - 1) * unit
    bounds = [int(step * power) for step in (*STEPS, Fraction(10))]
    at = bisect_right(bounds, value)
    return Range(bounds[at - 1], bounds[at])
