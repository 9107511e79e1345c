"""What a life asks of the service, and what it is answered: alike on paper and on disk."""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.campaigns.money.proofs import Happened


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody asks the organization."""

    message: Any


@dataclass(frozen=True, slots=True)
class Send:
    """The processor sends events, each in the shape of an old API version or of today's."""

    events: tuple[tuple[Happened, bool], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""


Step = Ask | Send | Wait


@dataclass(frozen=True, slots=True)
class Applied:
    """An event that was settled, and when."""

    event_id: str
    at: datetime
    state: str
    why: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a step: `told` is `reply`, `refused`, `duplicate` or `lost` (done, but the
    process died before it answered).

    `before` and `after` list the events that were applied before the step's turn and after it;
    `plan` is the organization's at that turn.
    """

    told: str = "reply"
    reply: Any = None
    before: tuple[Applied, ...] = ()
    after: tuple[Applied, ...] = ()
    plan: str = "free"


Life = Generator[Step, Answer, None]


class Wrong(AssertionError):  # noqa: N818 - what the service did
    """The service did what the model says it must not."""
