"""Answers of the chat model as they are kept; what was said is not."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Generation:
    """Who asked the model for an answer, over which store; `claim` is the same in a repeat.

    `process` is who makes it; None where no other could tell that it is gone.
    """

    id: str
    organization_id: str
    store_id: str
    user_id: str
    claim: str
    model: str
    created_at: datetime
    process: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ended and what it came to, in micro-USD; tokens are None after a crash."""

    outcome: str
    input_tokens: int | None
    output_tokens: int | None
    estimated: bool
    cost: int
    charged: int


@dataclass(frozen=True, slots=True)
class Abandoned:
    """An answer that nobody brings to its end, and its hold's last word on the cost."""

    id: str
    organization_id: str
    used: int
    covered: int
    closed: bool
