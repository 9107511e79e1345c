"""A kind of actor for tests of the runtime: it counts, claims, tells, fails, on demand."""

# ruff: noqa: ARG002 - a turn is given the state and the message, needed or not

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision, Parked, Perform, Refused, Tell
from tolsey.runtime.messages import ActorId, Call, LaneName, Message, Patience
from tolsey.storage.database import Database
from tolsey.storage.tables import stored

KIND = "counter"

SCHEMA = """
CREATE TABLE IF NOT EXISTS test_counters (key text PRIMARY KEY, total bigint NOT NULL CHECK (total < 1000000));
CREATE TABLE IF NOT EXISTS test_entries (key text NOT NULL, entry text NOT NULL, amount bigint NOT NULL);
CREATE TABLE IF NOT EXISTS test_claims (key text NOT NULL, claim text NOT NULL, PRIMARY KEY (key, claim));
"""


def counter(key: str) -> ActorId:
    return ActorId(KIND, key)


@stored("test_counters", nobodys="Rows of tests.", key=("key",))
@dataclass(frozen=True, slots=True)
class CounterRow:
    key: str
    total: int


@stored("test_entries", nobodys="Rows of tests.")
@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    entry: str
    amount: int


@stored("test_claims", nobodys="Rows of tests.", key=("key", "claim"), claim=True)
@dataclass(frozen=True, slots=True)
class Claim:
    key: str
    claim: str


@dataclass(frozen=True, slots=True)
class CounterState:
    key: str
    total: int = 0


@dataclass(frozen=True, slots=True)
class Add(Message[int]):
    amount: int
    entry: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Note(Message[int]):
    """A claim and an entry, without a change of state: the shape of a webhook."""

    claim: str


@dataclass(frozen=True, slots=True)
class Read(Message[int]):
    pass


@dataclass(frozen=True, slots=True)
class SlowRead(Message[int]):
    seconds: float


@dataclass(frozen=True, slots=True)
class Refuse(Message[int]):
    pass


@dataclass(frozen=True, slots=True)
class Break(Message[int]):
    pass


@dataclass(frozen=True, slots=True)
class Transfer(Message[int]):
    """Take an amount here and tell another to add it."""

    to: str
    amount: int


@dataclass(frozen=True, slots=True)
class Wait(Message[int]):
    name: str


@dataclass(frozen=True, slots=True)
class Resolve(Message[None]):
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Fetch(Message[int]):
    """Ask the world for a number and wait for it."""


@dataclass(frozen=True, slots=True)
class FetchNumber(Call["Fetched"]):
    lane: ClassVar[LaneName] = "platform"

    key: str


@dataclass(frozen=True, slots=True)
class Pull(Message[int]):
    """Ask the world something for an organization, in a lane, and do not wait for it."""

    organization_id: str
    name: str
    lane: str = "platform"


@dataclass(frozen=True, slots=True)
class PullNumber(Call[None]):
    lane: ClassVar[LaneName] = "platform"

    name: str
    organization_id: str


@dataclass(frozen=True, slots=True)
class RenewNumber(Call[None]):
    lane: ClassVar[LaneName] = "short"

    name: str
    organization_id: str


@dataclass(frozen=True, slots=True)
class Order(Message[int]):
    """Have something sent that must not be sent twice, and do not wait for it."""

    name: str


@dataclass(frozen=True, slots=True)
class SendOnce(Call["Add"]):
    lane: ClassVar[LaneName] = "platform"
    deadline_seconds: ClassVar[float] = 30.0
    patience: ClassVar[Patience | None] = Patience((0.0, 0.0), 4, (ConnectionError,))
    repeatable: ClassVar[bool] = False

    name: str


@dataclass(frozen=True, slots=True)
class Fetched(Message[None]):
    number: int


@dataclass(frozen=True, slots=True)
class Held(Message[int]):
    """Gather until the test opens the gate of that name, then add."""

    name: str
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Send(Message[int]):
    """Tell another to add; nothing changes here."""

    to: str
    amount: int
    key: str = ""
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Misdirect(Message[int]):
    """Tell an actor of a kind that nobody wrote."""

    kind: str


class Counter(Actor[CounterState]):
    kind = KIND

    def __init__(self, database: Database | None) -> None:
        super().__init__()
        self._database = database
        self.loads = 0
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.entered: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def load(self, keys: Sequence[str]) -> Mapping[str, CounterState]:
        self.loads += 1
        assert self._database is not None
        rows = await self._database.fetch(
            "SELECT key, total FROM test_counters WHERE key = ANY($1)", list(keys)
        )
        found = {row["key"]: row["total"] for row in rows}
        return {key: CounterState(key, found.get(key, 0)) for key in keys}

    def changes(self, old: CounterState, new: CounterState) -> Iterable[Any]:
        if old.total != new.total:
            yield CounterRow(new.key, new.total)

    @handles(Add)
    def add(self, state: CounterState, message: Add) -> Decision[CounterState, int]:
        after = replace(state, total=state.total + message.amount)
        records: list[Any] = []
        if message.entry:
            records.append(Entry(state.key, message.entry, message.amount))
        if message.claim:
            records.append(Claim(state.key, message.claim))
        return Decision(after, after.total, records)

    @handles(Note)
    def note(self, state: CounterState, message: Note) -> Decision[CounterState, int]:
        records = (Claim(state.key, message.claim), Entry(state.key, message.claim, 1))
        return Decision(state, state.total, records)

    @handles(Read)
    def read(self, state: CounterState, message: Read) -> Decision[CounterState, int]:
        return Decision(state, state.total)

    @handles(SlowRead)
    async def slow_read(
        self, state: CounterState, message: SlowRead
    ) -> Decision[CounterState, int]:
        await asyncio.sleep(message.seconds)
        return Decision(state, state.total)

    @handles(Refuse)
    def refuse(self, state: CounterState, message: Refuse) -> Decision[CounterState, int]:
        raise Refused(f"at {state.total}")

    @handles(Break)
    def broken(self, state: CounterState, message: Break) -> Decision[CounterState, int]:
        raise ZeroDivisionError

    @handles(Transfer)
    def transfer(self, state: CounterState, message: Transfer) -> Decision[CounterState, int]:
        after = replace(state, total=state.total - message.amount)
        return Decision(
            after, after.total, effects=[Tell(counter(message.to), Add(message.amount))]
        )

    @handles(Wait)
    def wait(self, state: CounterState, message: Wait) -> Decision[CounterState, int]:
        return Decision(state, Parked(message.name))

    @handles(Resolve)
    def resolve(self, state: CounterState, message: Resolve) -> Decision[CounterState, None]:
        return Decision(state, None, resolve={message.name: message.value})

    @handles(Held)
    async def held(self, state: CounterState, message: Held) -> Decision[CounterState, int]:
        self.entered[message.name].set()
        await self.gates[message.name].wait()
        after = replace(state, total=state.total + message.amount) if message.amount else state
        return Decision(after, after.total)

    @handles(Send)
    def send(self, state: CounterState, message: Send) -> Decision[CounterState, int]:
        answered = Tell(counter(message.to), Add(message.amount), message.key, message.due_at)
        return Decision(state, state.total, effects=[answered])

    @handles(Misdirect)
    def misdirect(self, state: CounterState, message: Misdirect) -> Decision[CounterState, int]:
        return Decision(state, state.total, effects=[Tell(ActorId(message.kind, "x"), Add(1))])

    @handles(Fetch)
    def fetch(self, state: CounterState, message: Fetch) -> Decision[CounterState, int]:
        return Decision(
            state, Parked("fetch"), effects=[Perform(FetchNumber(state.key), key=f"f:{state.key}")]
        )

    @handles(Pull)
    def pull(self, state: CounterState, message: Pull) -> Decision[CounterState, int]:
        call = PullNumber if message.lane == "platform" else RenewNumber
        effect = Perform(call(message.name, message.organization_id), key=message.name)
        return Decision(state, state.total, effects=[effect])

    @handles(Order)
    def order(self, state: CounterState, message: Order) -> Decision[CounterState, int]:
        effect = Perform(SendOnce(message.name), key=message.name)
        return Decision(state, state.total, effects=[effect])

    @handles(Fetched)
    def fetched(self, state: CounterState, message: Fetched) -> Decision[CounterState, None]:
        after = replace(state, total=message.number)
        return Decision(after, None, resolve={"fetch": message.number})
