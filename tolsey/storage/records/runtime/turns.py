"""Turns on their way to disk: what a group commit is made of, and what became of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Integer, Jsonb, Personal, stored

CallState = Literal["waiting", "sent", "unknown"]
"""`sent` while it may be on its way to the outside, `unknown` when nobody knows whether it was done."""


@dataclass(slots=True)
class ActorPart:
    """One actor's share of a batch: where it stood, and what changed in its state."""

    kind: str
    key: str
    slot: int
    epoch: int
    base: int
    """The version on disk that this share stands on."""
    records: Sequence[Any] = ()


@dataclass(slots=True)
class TurnPart:
    """One turn of a batch. `voids` says that later turns of its actor stand on what it changed."""

    actor: int
    message_id: str
    message: str
    voids: bool
    consumes: str | None = None
    """The outbox row this turn takes away; without that row the turn is a duplicate."""
    records: Sequence[Any] = ()
    reply: str | None = None
    """What it answers, where the one who asked is another process."""
    about: str = ""
    """Of what its message is one of several, which take effect in order."""
    way_back: bytes | None = None
    """How to get from the state after it to the one before, where its kind keeps that."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """Turns of many actors that commit together, in order."""

    actors: list[ActorPart] = field(default_factory=list)
    turns: list[TurnPart] = field(default_factory=list)
    finishes_calls: bool = False
    """Whether one of the rows that are consumed is a call, which is shown as done for a day."""
    is_ordered: bool = False
    """Whether one of the rows that are consumed says what it is about."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What a batch's statement answered. Indexes are those of the batch.

    Nothing was written for an actor in `fenced` (another process owns its slot), `stale` (its
    version on disk is not `base`) or `voided` (a duplicate turn had changed its state). A turn in
    `duplicates` wrote nothing; one that is in `early` as well is no repeat, but what its sender sent
    before still waits in the outbox. Under the keys in `older` other rows waited than those of this batch.
    Everything else is on disk.
    """

    fenced: frozenset[int] = frozenset()
    stale: frozenset[int] = frozenset()
    voided: frozenset[int] = frozenset()
    duplicates: frozenset[int] = frozenset()
    early: frozenset[int] = frozenset()
    older: frozenset[str] = frozenset()


@stored(
    "outbox",
    conflict="ON CONFLICT (key) DO NOTHING",
    absent={"due_at": "now()"},
    besides={"last_error": str | None, "created_at": datetime, "held_by": str | None},
    belongs=(
        Belongs(to=RowOwner.STORE, by="kind = 'store' AND actor_key = $1"),
        Belongs(to=RowOwner.ORGANIZATION, by="kind = 'organization' AND actor_key = $1"),
    ),
    unexported="Work that is under way; what comes of it is exported.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """Work that follows a commit: a message to an actor or a call to the world.

    `payload` is JSON text of the message or call whose class is `name`, as `kind.Name` or, as older releases wrote it, alone; `kind` and `actor_key` say
    who receives the message, or whose call it is.
    """

    key: str
    slot: Annotated[int, Integer]
    kind: str
    actor_key: str
    name: str
    payload: Annotated[str, Jsonb, Personal.FREE_TEXT]
    due_at: datetime | None = None
    """None: at once, by the database's clock, whatever ours says."""
    attempts: Annotated[int, Integer] = 0
    """How many tries have failed."""
    interruptions: Annotated[int, Integer] = 0
    """How many processes ended, without a word, while they worked on it."""
    request_id: str | None = None
    sender: str | None = None
    """Whose messages of one thing take effect in the order in which they were kept; None: no order."""
    about: Annotated[str, Personal.PSEUDONYM] = ""
    """The thing that it is about, such as an order or a deal; empty where nobody said."""
    lane: str | None = None
    """Where a call waits for its place; None for a message."""
    state: CallState = "waiting"
    """How far a call is; a message only waits."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a process can work on: classes of messages and calls, and kinds of actor, by name."""

    names: Collection[str]
    kinds: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Rows of one class that a process cannot work on, and how long the oldest has been due."""

    kind: str
    name: str
    rows: int
    waited: timedelta
