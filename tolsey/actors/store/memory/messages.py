"""What a store is asked to remember and to forget."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.runtime.messages import Call, LaneName, Message, Patience
from tolsey.storage.records.memory import MemorySource, StoreFact, StoreMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class FactKept:
    """A fact as it is now, and as it was if there was one of its key."""

    fact: StoreFact
    before: StoreFact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepFact(Message[FactKept]):
    """Somebody tells a fact; `value` is JSON text. `fact_id` is its id if there is none of its key yet.

    Refused with 409 `written_by_merchant` where who tells it may not write over who told it before.
    """

    fact_id: str
    key: str
    value: str
    source: MemorySource
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetFact(Message[StoreFact]):
    """Somebody wants a fact forgotten; the reply is what it was, 404 when there is none, 409 as above."""

    key: str
    source: MemorySource
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepMessage(Message[StoreMessage]):
    """Somebody tells what was said; the same id again changes nothing."""

    message_id: str
    role: str
    text: str
    source: MemorySource
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectMessage(Message[StoreMessage]):
    """Somebody corrects what was said; 404 when it is not there, 409 `written_by_merchant` as for facts."""

    message_id: str
    text: str
    source: MemorySource
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetMessage(Message[StoreMessage]):
    """Somebody wants what was said forgotten; the reply is what it was."""

    message_id: str
    source: MemorySource
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class EmbedRest(Message[bool]):
    """Somebody looked and found memory without an embedding; the reply says whether that is begun now."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEmbedded(Message[None]):
    """A batch has its embeddings, and so much is left."""

    left: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedMemory(Call[MemoryEmbedded]):
    """Make embeddings of a batch of what has none of the model in use; done twice it makes no difference."""

    lane: ClassVar[LaneName] = "model"
    deadline_seconds: ClassVar[float] = 120.0
    patience: ClassVar[Patience | None] = Patience(waits=(5.0, 60.0), tries=4)

    store_id: str
    organization_id: str

    def given_up(self, why: str, at: datetime) -> MemoryEmbedded:
        """Wait until somebody looks again."""
        del why
        return MemoryEmbedded(left=0, at=at)


@dataclass(frozen=True, slots=True)
class ForgetMemory(Message[int]):
    """Nothing of the store is to be remembered; the reply is how much that was."""

    at: datetime
