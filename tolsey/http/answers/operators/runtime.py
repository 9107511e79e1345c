"""How the running service is: actors, slots and processes, and what was kept of each event."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from tolsey.http.answers.base import ApiAnswer, ListAnswer, Omittable, Timestamp
from tolsey.http.answers.operators.diagnosis import CallAnswer, SoldAnswer
from tolsey.runtime.shards.membership import Member
from tolsey.runtime.shards.oversight import ranges
from tolsey.storage.database import Row
from tolsey.storage.records.mail import BounceKind
from tolsey.storage.records.provider_events import ProviderEventState

UNKNOWN: Final[Mapping[str, Any]] = {
    "leaseLeftSeconds": None,
    "lag": {},
    "inFlight": None,
    "actors": None,
}
"""What is known of a process that does not answer."""


class ActorAnswer(ApiAnswer):
    """How an actor is, and in which process."""

    kind: str
    id: str
    slot: int
    epoch: int | None
    version: int
    status: str
    mailbox_depth: int
    uncommitted: int
    oldest_message_seconds: float
    turn_in_progress: bool
    recent_errors: Omittable[int] = None
    recent_seconds: Omittable[float] = None
    process: str

    @classmethod
    def of(cls, answered: Mapping[str, Any], **more: Any) -> Self:
        """Show what a process tells of an actor; what only a newer one tells is left out."""
        return cls.model_validate(
            {**answered, **more}, by_alias=True, by_name=False, extra="ignore"
        )


class ActorsAnswer(ListAnswer[ActorAnswer]):
    """The actors that are awake; `unanswered` names processes that kept silent."""

    unanswered: list[str]


class JournalTurnAnswer(ApiAnswer):
    """A turn that changed something; `restorable` says whether the way back to the state before it is on record."""

    version: int
    message_id: str
    message: str
    epoch: int
    restorable: bool
    committed_at: Timestamp

    @classmethod
    def of(cls, row: Row) -> Self:
        """Show a line of the journal."""
        return cls.read(row, restorable=row["is_kept"])


class TurnReachedAnswer(ApiAnswer):
    """A turn before which an actor's state can still be shown."""

    version: int
    message_id: str
    committed_at: Timestamp


class StateDifferenceAnswer(ApiAnswer):
    """A place in which the states differ; nothing stands for a side that has none. `masked` values are shown to nobody."""

    place: str
    before: Omittable[Any] = None
    now: Omittable[Any] = None
    masked: bool


class StateBeforeAnswer(ApiAnswer):
    """An actor's state as it stood before a message, beside today's; secrets and what says something of people are masked.

    Where the journal keeps no way back so far, `before` is null and `why` says so; `reached` is the oldest turn before
    which the state can be shown. Of the places in `unknown` nobody can tell how they were.
    """

    kind: str
    id: str
    message_id: str
    message: str
    version: int
    committed_at: Timestamp
    current_version: int
    before: dict[str, Any] | None
    now: dict[str, Any]
    differences: list[StateDifferenceAnswer]
    more: bool
    unknown: list[str]
    reached: TurnReachedAnswer | None
    why: Omittable[str] = None


class TurnAnswer(ApiAnswer):
    """A turn that an actor took."""

    message: str
    milliseconds: float
    outcome: str
    request_id: str | None


class InFlightMessageAnswer(ApiAnswer):
    """A message that has its turn (`turn`), or has had it and is not yet on disk (`commit`), for so long since it came."""

    stage: Literal["turn", "commit"]
    message: str
    message_id: str
    request_id: str | None
    seconds: float


class TimerAnswer(ApiAnswer):
    """A message that an actor gets later: at a time that was set, or once more after it failed."""

    key: str
    message: str
    due_at: Timestamp
    attempts: int
    last_error: str | None


class InspectedActorAnswer(ActorAnswer):
    """An actor with its state, secrets masked, what waits for it, what comes later, its last turns and its calls."""

    state: dict[str, Any] | None
    in_flight: Omittable[InFlightMessageAnswer] = None
    waiting: list[str]
    timers: list[TimerAnswer]
    turns: list[TurnAnswer]
    calls: list[CallAnswer]
    listings: Omittable[list[SoldAnswer]] = None


class AuditAnswer(ApiAnswer):
    """Who did what, and why; `metadata` is what the event says besides, kept whole."""

    id: str
    event: str
    subject: str
    organization_id: str | None
    actor: str
    metadata: dict[str, Any]
    retention: str
    created_at: Timestamp

    @classmethod
    def of(cls, row: Row) -> Self:
        """Show a row of the audit log."""
        return cls.read(row, id=str(row["id"]), metadata=json.loads(row["metadata"]))


class DeliveryAnswer(ApiAnswer):
    """A delivery from the commerce platform."""

    store_id: str
    delivery_id: str
    topic: str
    shop_domain: str
    triggered_at: Timestamp | None
    created_at: Timestamp


class MailAnswer(ApiAnswer):
    """A mail: to whom, about what, and what the server said; never what it says."""

    id: str
    event: str
    about: str
    organization_id: str | None
    recipient: str
    subject: str
    state: str
    attempts: int
    next_try_at: Timestamp | None
    answer: str | None
    created_at: Timestamp
    ended_at: Timestamp | None


class BounceAnswer(ApiAnswer):
    """An address that the mail provider told us of: `bounced` is written to no more, `complained` only what must be said."""

    recipient: str
    kind: BounceKind
    why: str
    since: Timestamp


class ProviderEventAnswer(ApiAnswer):
    """An event of a provider, and what became of it."""

    provider: str
    event_id: str
    type: str
    state: ProviderEventState
    why: str | None
    received_at: Timestamp
    settled_at: Timestamp | None


class WholeProviderEventAnswer(ProviderEventAnswer):
    """An event of a provider as it was sent; `payload` is null when its key is gone."""

    payload: dict[str, Any] | None


class SlotAnswer(ApiAnswer):
    """A slot, who owns it, and where it was put."""

    slot: int
    owner: str | None
    epoch: int
    pinned_to: str | None
    claimed_at: Timestamp | None


class UnreadAnswer(ApiAnswer):
    """Rows that only another version can read."""

    message: str
    rows: int
    waited_seconds: int


class LagAnswer(ApiAnswer):
    """What waits for a process; null where it does not answer."""

    bus_seconds: float | None
    outbox: int
    mailbox: int | None
    uncommitted: int | None
    unread: list[UnreadAnswer] | None


class InFlightAnswer(ApiAnswer):
    """What a process waits for."""

    asks: int
    effects: int


class ProcessAnswer(ApiAnswer):
    """A process: how it is and which slots it has."""

    id: str
    host: str
    pid: int
    since: str | None
    alive: bool
    draining: bool
    silent_seconds: float
    answers: bool
    slots: int
    slot_ranges: str
    lease_left_seconds: float | None
    actors: int | None
    lag: LagAnswer
    in_flight: InFlightAnswer | None

    @classmethod
    def of(
        cls, member: Member, slots: Sequence[int], vitals: Mapping[str, Any] | None, *, outbox: int
    ) -> Self:
        """Show a process with its slots, what it tells of itself, and what waits for its slots."""
        answered = vitals or UNKNOWN
        lag = {
            name: answered["lag"].get(name)
            for name in ("busSeconds", "mailbox", "uncommitted", "unread")
        }
        return cls.model_validate(
            {
                "id": member.id,
                "host": member.host,
                "pid": member.pid,
                "since": member.since or None,
                "alive": member.alive,
                "draining": member.draining,
                "silentSeconds": member.silent_seconds,
                "answers": vitals is not None,
                "slots": len(slots),
                "slotRanges": ranges(slots),
                "leaseLeftSeconds": answered["leaseLeftSeconds"],
                "actors": answered["actors"],
                "lag": {**lag, "outbox": outbox},
                "inFlight": answered["inFlight"],
            },
            by_alias=True,
            by_name=False,
            extra="ignore",
        )


class SlotsAnswer(ListAnswer[SlotAnswer]):
    """Slots, and beside them every process."""

    processes: list[ProcessAnswer]
