"""Pictures of figures with their intervals: where each mark stands, in shares of a hundred of the picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10
from typing import Final

from tolsey.http.layout.words import number

STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
LINES: Final = 4
MOST_MARKS: Final = 30
"""More stand too close on a telephone."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One figure: nothing where it is not known, and no `high` where it is at least `low`."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    is_own: bool = False
    """Whether it is the reader's own, among those of others."""
    is_unfinished: bool = False
    """Whether its time is not over."""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to draw."""
        return self.value is not None or self.low is not None


@dataclass(frozen=True, kw_only=True)
class DrawnMark:
    """Where a mark stands: from the left, and from the top."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    is_bound: bool
    is_own: bool


@dataclass(frozen=True, slots=True)
class DrawnBar:
    """Where a bar stands, from the left and from the top; it ends at the bottom."""

    x: float
    y: float
    width: float
    height: float
    is_unfinished: bool


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Figures beside each other, or one over time, joined where `is_line`; `said` is the picture in a sentence.

    Where `is_bars`, each stands on the ground. `before` is what was so as long ago, figure by figure.
    """

    said: str
    marks: Sequence[Mark]
    is_over_time: bool = False
    is_line: bool = False
    is_bars: bool = False
    before: Sequence[float] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known."""
        return not any(one.is_known for one in self.marks)

    @cached_property
    def top(self) -> float:
        """The largest figure of the axis, a round one above all that is drawn."""
        known = [
            figure
            for one in self.marks
            for figure in (one.value, one.low, one.high)
            if figure is not None
        ]
        largest = max([*known, *self.before, 0.0])
        if largest <= 0:
            return 1.0
        step = largest / LINES
        power = 10.0 ** floor(log10(step))
        return LINES * power * next(one for one in STEPS if one * power >= step * 0.999_999)

    @property
    def ticks(self) -> Sequence[str]:
        """What stands at the lines, from the top down."""
        return [number(self.top * n / LINES) for n in range(LINES, -1, -1)]

    @property
    def lines(self) -> Sequence[float]:
        """Where the lines stand, from the top down."""
        return [100 * n / LINES for n in range(LINES + 1)]

    @cached_property
    def drawn(self) -> Sequence[DrawnMark]:
        """Where each mark stands."""
        width = 100 / max(len(self.marks), 1)
        return [
            DrawnMark(
                x=round(width * (n + 0.5), 2),
                y=self._y(one.value),
                low=self._y(one.low),
                high=self._y(one.high),
                is_bound=one.low is not None and one.high is None,
                is_own=one.is_own,
            )
            for n, one in enumerate(self.marks)
        ]

    @property
    def dots(self) -> Sequence[DrawnMark]:
        """The marks that are drawn as dots: none where bars or lines alone say it."""
        return () if self.is_bars or self.before else self.drawn

    @property
    def bars(self) -> Sequence[DrawnBar]:
        """Where each bar stands."""
        width = 100 / max(len(self.marks), 1)
        return [
            DrawnBar(
                x=round(width * (n + 0.14), 2),
                y=one.y,
                width=round(width * 0.72, 2),
                height=round(100 - one.y, 2),
                is_unfinished=mark.is_unfinished,
            )
            for n, (one, mark) in enumerate(zip(self.drawn, self.marks, strict=True))
            if one.y is not None
        ]

    @property
    def line_before(self) -> str:
        """The way of what was so as long ago."""
        width = 100 / max(len(self.before), 1)
        return "".join(
            f"{'L' if n else 'M'}{width * (n + 0.5):.2f} {self._y(one)}"
            for n, one in enumerate(self.before)
        )

    @property
    def line(self) -> str:
        """The way from each known figure to the next, as the path of a picture."""
        known = [one for one in self.drawn if one.y is not None]
        return "".join(f"{'L' if n else 'M'}{one.x} {one.y}" for n, one in enumerate(known))

    @property
    def labels(self) -> Sequence[str]:
        """What stands below: of a time its ends, else every name."""
        if not self.is_over_time or len(self.marks) < 2:  # noqa: PLR2004 - a time has two ends
            return [one.label for one in self.marks]
        return [self.marks[0].label, self.marks[-1].label]

    def _y(self, figure: float | None) -> float | None:
        return None if figure is None else round(100 - 100 * figure / self.top, 2)


def thinned(marks: Sequence[Mark]) -> Sequence[Mark]:
    """Take evenly of many, the last among them."""
    each = ceil(len(marks) / MOST_MARKS)
    return [one for n, one in enumerate(marks) if (len(marks) - 1 - n) % max(each, 1) == 0]
