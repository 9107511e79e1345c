"""What every turn leaves behind: its kind, message, duration and outcome.

A turn pays for two clock readings and one tuple; counting is done for many turns at once.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tolsey.runtime.messages import ActorId

REMEMBERED = 20_000
"""How many of the last turns of a process can be looked at."""

FOLDED = 512
"""How many turns are counted at once."""

Noted: TypeAlias = tuple[float, ActorId, str, float, str, str | None]
"""A turn as it is noted, with the fields of a Span: making a named tuple takes three times as long."""

BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Upper bounds of the duration histogram, in seconds."""

CALL_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0)
"""Those of calls to the outside, which may take as long as the export of a large shop."""


class Span(NamedTuple):
    """One turn, as it ended."""

    ended_at: float
    actor: ActorId
    message: str
    seconds: float
    outcome: str
    request_id: str | None


class Traced(NamedTuple):
    """A step of the work that a request caused: a turn, a commit, a try of a call to the outside."""

    step: str
    name: str
    request_id: str
    began_at: float
    """By the clock of the event loop."""
    seconds: float
    outcome: str
    of: str | None = None
    """The actor, or the lane of a call."""


class ActorTally(NamedTuple):
    """The last turns of one actor: how many failed, and how long all took."""

    errors: int
    seconds: float


NO_TURNS = ActorTally(0, 0.0)


@dataclass(slots=True)
class TurnTally:
    """All turns of one message type."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def add(self, seconds: list[float], outcome: str) -> None:
        """Count turns that ended alike."""
        self.outcomes[outcome] += len(seconds)
        self.seconds += sum(seconds)
        seconds.sort()
        below = 0
        for n, bound in enumerate(BUCKETS):
            upto = bisect_right(seconds, bound, below)
            self.buckets[n] += upto - below
            below = upto
        self.buckets[-1] += len(seconds) - below


class Durations:
    """How long things of one sort took: how many ended within each bound, and all of it."""

    __slots__ = ("bounds", "buckets", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds


class Telemetry:
    """Counters and the last turns of one process."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.calls: defaultdict[tuple[str, str, str], Durations] = defaultdict(
            lambda: Durations(CALL_BUCKETS)
        )
        """Tries of calls to the outside, by lane, name and outcome (`done`, `failed`, `overdue`)."""
        self.batch_turns = 0
        self.commit_seconds = 0.0
        self.recent: list[Noted] = []
        """Turns that are not yet counted. Whoever notes one calls `fold` when there are `FOLDED`."""
        self.trace: Callable[[Traced], None] | None = None
        """Who is told of each step that has a request; None: nobody, and nothing is spent on it."""
        self._turns: dict[tuple[str, str], TurnTally] = {}
        self._spans: deque[Noted] = deque(maxlen=REMEMBERED)

    def span(self, span: Span) -> None:
        """Note a turn."""
        self.recent.append(span)
        if len(self.recent) >= FOLDED:
            self.fold()

    def fold(self) -> None:
        """Count the turns that were noted since the last time."""
        alike: dict[tuple[str, str, str], list[float]] = {}
        last: tuple[str, str, str] = ("", "", "")
        same: list[float] = []
        for _, (kind, _), message, seconds, outcome, _ in self.recent:
            # Neighbours are often of one sort: that is seen without making and hashing a key.
            if message is not last[1] or outcome is not last[2] or kind is not last[0]:
                last = (kind, message, outcome)
                same = alike.setdefault(last, [])
            same.append(seconds)
        for (kind, message, outcome), durations in alike.items():
            tally = self._turns.get((kind, message))
            if tally is None:
                tally = self._turns[kind, message] = TurnTally()
            tally.add(durations, outcome)
        self._spans.extend(self.recent)
        if self.trace is not None:
            for began_at, actor, message, seconds, outcome, request_id in self.recent:
                if request_id is not None:
                    self.trace(
                        Traced("turn", message, request_id, began_at, seconds, outcome, str(actor))
                    )
        self.recent.clear()

    @property
    def turns(self) -> dict[tuple[str, str], TurnTally]:
        """All turns so far, by kind of actor and message."""
        self.fold()
        return self._turns

    def tallies(self) -> dict[ActorId, ActorTally]:
        """Add up the turns that are remembered, by their actor."""
        self.fold()
        found: dict[ActorId, ActorTally] = {}
        for _, actor, _, seconds, outcome, _ in self._spans:
            errors, all_of_it = found.get(actor, NO_TURNS)
            found[actor] = ActorTally(errors + (outcome == "failed"), all_of_it + seconds)
        return found

    def last_of(self, actor: ActorId, limit: int = 50) -> Iterator[Span]:
        """Give the last turns of one actor, newest first."""
        self.fold()
        for span in reversed(self._spans):
            if span[1] == actor:
                yield Span(*span)
                limit -= 1
                if limit == 0:
                    return
