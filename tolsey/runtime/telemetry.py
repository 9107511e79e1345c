"""What every turn leaves behind: its kind, message, duration and outcome.

Counting costs a turn two clock readings and a few additions; everything else happens when an
operator looks.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tolsey.runtime.messages import ActorId

REMEMBERED = 20_000
"""How many of the last turns of a process can be looked at."""

BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Upper bounds of the duration histogram, in seconds."""


class Span(NamedTuple):
    """One turn, as it ended."""

    ended_at: float
    actor: ActorId
    message: str
    seconds: float
    outcome: str
    request_id: str | None


@dataclass(slots=True)
class Tally:
    """All turns of one message type."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def add(self, seconds: float, outcome: str) -> None:
        """Count a turn."""
        self.outcomes[outcome] += 1
        self.seconds += seconds
        for n, bound in enumerate(BUCKETS):
            if seconds <= bound:
                self.buckets[n] += 1
                return
        self.buckets[-1] += 1


class Telemetry:
    """Counters and the last turns of one process."""

    def __init__(self) -> None:
        self.turns: dict[tuple[str, str], Tally] = {}
        self.counters: Counter[str] = Counter()
        self.batch_turns = 0
        self.commit_seconds = 0.0
        self._spans: deque[Span] = deque(maxlen=REMEMBERED)

    def span(self, span: Span) -> None:
        """Note a turn."""
        name = (span.actor.kind, span.message)
        tally = self.turns.get(name)
        if tally is None:
            tally = self.turns[name] = Tally()
        tally.add(span.seconds, span.outcome)
        self._spans.append(span)

    def last_of(self, actor: ActorId, limit: int = 50) -> Iterator[Span]:
        """Give the last turns of one actor, newest first."""
        for span in reversed(self._spans):
            if span.actor == actor:
                yield span
                limit -= 1
                if limit == 0:
                    return
