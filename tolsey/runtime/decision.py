"""What a turn decided, as data: nothing has happened yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from tolsey.runtime.messages import ActorId, Call, Message

State_co = TypeVar("State_co", covariant=True)
Reply_co = TypeVar("Reply_co", covariant=True)


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A decision that is a no: the turn changes nothing and the asker gets this."""


@dataclass(frozen=True, slots=True)
class Tell:
    """A message to another actor, durable: it is in the sender's commit and takes effect once.

    `key` is what makes it one: while a tell of that key waits, a second one changes nothing.
    Empty, the runtime names it after the turn that made it.
    """

    to: ActorId
    message: Message[Any]
    key: str = ""
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Perform:
    """A call to the world after the commit, at least once; `key` as in `Tell`."""

    call: Call[Any]
    key: str = ""
    due_at: datetime | None = None


Effect = Tell | Perform


@dataclass(frozen=True, slots=True)
class Parked:
    """Instead of a reply: the asker waits until a later turn resolves this name."""

    name: str


@dataclass(slots=True)
class Decision(Generic[State_co, Reply_co]):
    """The next state, the answer, the records to append, the effects to follow.

    A decision that keeps the very same state object and appends nothing is a read: it costs
    no commit. `resolve` answers everyone parked under a name, with a value or a Refusal.

    Nobody writes to one. It is not frozen because that costs every turn half a microsecond.
    """

    state: State_co
    reply: Reply_co | Parked
    records: Sequence[Any] = ()
    effects: Sequence[Effect] = ()
    resolve: Mapping[str, Any] | None = None
