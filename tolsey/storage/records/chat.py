"""Answers of the chat model as they are kept; what was said is not."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from tolsey.storage.owners import (
    EVIDENCE_OF_ORGANIZATION,
    EVIDENCE_OF_USER,
    MONEY,
    Belongs,
    RowOwner,
)
from tolsey.storage.tables import Personal, stored


@stored(
    "chat_generations",
    key=("claim",),
    conflict="ON CONFLICT (claim) DO NOTHING",
    besides={
        "ended_at": datetime | None,
        "outcome": str | None,
        **dict.fromkeys(("input_tokens", "output_tokens", "cost", "charged"), int | None),
        "estimated": bool | None,
    },
    belongs=(EVIDENCE_OF_USER, EVIDENCE_OF_ORGANIZATION, Belongs(to=RowOwner.STORE, stays=MONEY)),
    export="chatAnswers",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Who asked the model for an answer, over which store; `claim` is the same in a repeat.

    `process` is who makes it; None where no other could tell that it is gone.
    """

    id: str
    organization_id: str
    store_id: str
    user_id: Annotated[str, Personal.USER]
    claim: str
    model: str
    created_at: datetime
    process: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an answer ended and what it came to, in micro-USD; tokens are None after a crash."""

    outcome: str
    input_tokens: int | None
    output_tokens: int | None
    estimated: bool
    cost: int
    charged: int
