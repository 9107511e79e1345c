"""How far the sales that are told from outside lie from those that shops have verified here (rules/intelligence#calibration).

A shop takes part only while its owner's box is ticked. What is published of all of them is a factor, its spread
and the median error: of each no shop's own revenue can be told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean, median, stdev
from typing import Final

from tolsey.actors.storefront.observed import Provenance
from tolsey.actors.storefront.velocity import Figure

FEWEST_SHOPS: Final = 10
"""Of fewer a shop could guess another's revenue, and no median says much."""
NINETY: Final = 1.645
"""Of 90 in 100, on both sides."""
DIGITS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a shop took in a month by its own books, and what was estimated from outside."""

    taken: float
    estimated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """By what estimates are multiplied; nine shops in ten lie within `spread` times of it."""

    factor: float
    spread: float
    shops: int
    median_error: float
    """Half of the shops are told closer than this share of what they took, each by the others' factor."""

    def applied(self, figure: Figure) -> Figure:
        """Correct an estimate, and widen its interval by how far apart shops are."""
        if figure.value is None:
            return figure
        low, high = figure.low or 0.0, figure.high
        return replace(
            figure,
            value=figure.value * self.factor,
            low=low * self.factor / self.spread,
            high=None if high is None else high * self.factor * self.spread,
            method=Provenance.ESTIMATED,
            reason=(
                "What was sold of the stock that is shown, at its price,"
                f" times {self.factor:g} as {self.shops} verified shops have it;"
                f" the median error is {self.median_error:.0%}."
            ),
        )


def fit(shops: Sequence[Verified]) -> Calibration | None:
    """Fit the factor; None where too few shops let theirs be compared."""
    logs = [log(one.taken / one.estimated) for one in shops]
    if len(logs) < FEWEST_SHOPS:
        return None
    # Each is judged by what the others say: its own figure would make it look better than a stranger's.
    errors = [
        abs(exp(_middle([*logs[:place], *logs[place + 1 :]]) - own) - 1)
        for place, own in enumerate(logs)
    ]
    return Calibration(
        factor=round(exp(_middle(logs)), DIGITS),
        spread=round(exp(NINETY * stdev(logs)), DIGITS),
        shops=len(logs),
        median_error=round(median(errors), DIGITS),
    )


def _middle(logs: Sequence[float]) -> float:
    """Take the mean of the middle half: an odd shop moves it little, and none can be read off it."""
    cut = len(logs) // 4
    return fmean(sorted(logs)[cut : len(logs) - cut])
