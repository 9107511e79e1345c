"""How things stand and what wants doing, as lists on pages show it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Tone = Literal["good", "warn", "bad", "wait", "you", "idle"]
"""How urgent something is, by the names of the parts of pages that show it."""
URGENCY: Final[tuple[Tone, ...]] = ("bad", "warn", "you", "wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One thing that wants doing: what is so, what to do, and where."""

    tone: Tone
    title: str
    advice: str
    subject: str
    """The name of the store or listing that it is about."""
    act: str = ""
    address: str = ""
    since: datetime | None = None
    """When it began to want somebody; None where nothing says so."""
    is_new: bool = False
    """Whether its reader has not seen it yet."""


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state in a word or two, and what is known beside it."""

    tone: Tone
    word: str
    note: str = ""


def by_urgency(wants: Iterable[Want]) -> list[Want]:
    """Put what is broken first, then what grows old, then what the reader may do; of each the newest first."""
    return sorted(
        wants,
        key=lambda want: (URGENCY.index(want.tone), -want.since.timestamp() if want.since else 0.0),
    )


def worst(standings: Sequence[ShownState]) -> ShownState:
    """Choose the standing that a store is shown by on a list."""
    order: tuple[Tone, ...] = ("bad", "warn", "you", "wait", "idle", "good")
    return min(standings, key=lambda one: order.index(one.tone))
