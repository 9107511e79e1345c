"""For how long stock lasts, as it sold of late; agents and people are told the same."""

from math import sqrt
from typing import Final

SELLING_DAYS: Final = 28
"""Four whole weeks: each day of the week counts alike."""
WITHIN: Final = 1.96
"""Standard deviations within which 95 of 100 lie."""


def days_left(available: int, sold: int, days: int) -> tuple[float, float, float | None]:
    """Tell in how many days stock is gone, at the earliest and at the latest, as so many sold in so many days.

    What sells one by one is Poisson distributed; its bounds are Byar's (Breslow and Day, Statistical
    Methods in Cancer Research II, 1987, section 2.3). A lower bound of nothing sold has no latest day.
    """
    fewest = sold * (1 - 1 / (9 * sold) - WITHIN / (3 * sqrt(sold))) ** 3 if sold else 0.0
    above = sold + 1
    most = above * (1 - 1 / (9 * above) + WITHIN / (3 * sqrt(above))) ** 3
    latest = available * days / fewest if fewest > 0 else None
    return available * days / sold, available * days / most, latest
