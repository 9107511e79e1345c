"""The actors of the campaign: accounts that leave a posting for everything that changes them."""

# ruff: noqa: ARG002 - a turn is given the state and the message, needed or not

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tests.campaigns.model import Connection
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision, Parked, Perform, Refused, Tell
from tolsey.runtime.messages import ActorId, Call, LaneName, Message
from tolsey.storage.tables import stored

KIND = "account"


@stored("sim_accounts", nobodys="Rows of tests.", key=("key",), replaces=("total",))
@dataclass(frozen=True, slots=True)
class AccountRow:
    key: str
    total: int
    count: int


@stored("sim_postings", nobodys="Rows of tests.")
@dataclass(frozen=True, slots=True)
class Posting:
    """What changed an account: its n-th change."""

    key: str
    n: int
    op: str
    amount: int


@stored("sim_seals", nobodys="Rows of tests.", key=("op",), claim=True)
@dataclass(frozen=True, slots=True)
class Seal:
    """A claim: this op may happen once."""

    op: str


@stored("sim_marks", nobodys="Rows of tests.")
@dataclass(frozen=True, slots=True)
class MarkRow:
    """Something an account noted without changing."""

    key: str
    op: str


@stored("sim_bad", nobodys="Rows of tests.")
@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that no table takes."""

    op: str


@dataclass(frozen=True, slots=True)
class Account:
    key: str
    total: int = 0
    count: int = 0


Standing = tuple[int, int]
"""How many changes an account has had, and what they add up to: what every answer carries."""


@dataclass(frozen=True, slots=True)
class Deposit(Message[Standing]):
    op: str
    amount: int
    once: bool = False
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Move(Message[Standing]):
    op: str
    to: str
    amount: int


@dataclass(frozen=True, slots=True)
class Receive(Message[Standing]):
    op: str
    amount: int


@dataclass(frozen=True, slots=True)
class Mark(Message[Standing]):
    op: str


@dataclass(frozen=True, slots=True)
class Peek(Message[Standing]):
    op: str


@dataclass(frozen=True, slots=True)
class Count(Message[Standing]):
    """Gather for a while, then deposit; an amount of nothing makes it a read."""

    op: str
    amount: int


@dataclass(frozen=True, slots=True)
class Decline(Message[Standing]):
    op: str


@dataclass(frozen=True, slots=True)
class Stumble(Message[Standing]):
    op: str


@dataclass(frozen=True, slots=True)
class Consult(Message[Standing]):
    """Wait for what the world says; those who ask meanwhile share the answer."""

    op: str


@dataclass(frozen=True, slots=True)
class Look(Call["Looked"]):
    lane: ClassVar[LaneName] = "platform"

    key: str


@dataclass(frozen=True, slots=True)
class Looked(Message[None]):
    op: str


class Accounts(Actor[Account]):
    kind = KIND
    mailbox = 4
    turn_seconds = 3.0

    def __init__(self, connection: Connection, found: Callable[[str], None]) -> None:
        super().__init__()
        self._connection = connection
        self._found = found
        self._inside: dict[str, str] = {}

    async def load(self, keys: Sequence[str]) -> Mapping[str, Account]:
        rows = await self._connection.rows("sim_accounts", keys)
        return {
            key: Account(key, rows[key].total, rows[key].count) if key in rows else Account(key)
            for key in keys
        }

    def changes(self, old: Account, new: Account) -> Iterable[Any]:
        if old != new:
            yield AccountRow(new.key, new.total, new.count)

    def _post(
        self, state: Account, op: str, amount: int, records: Sequence[Any] = (), **rest: Any
    ) -> Decision[Account, Any]:
        if state.key in self._inside:
            self._found(f"turns overlap on {state.key}: {op} in {self._inside[state.key]}")
        after = Account(state.key, state.total + amount, state.count + 1)
        posting = Posting(state.key, after.count, op, amount)
        return Decision(after, (after.count, after.total), (posting, *records), **rest)

    @handles(Deposit)
    def deposit(self, state: Account, message: Deposit) -> Decision[Account, Standing]:
        records = [Seal(message.op)] if message.once else []
        bad = [BadRow(message.op)] if message.bad else []
        return self._post(state, message.op, message.amount, [*records, *bad])

    @handles(Move)
    def move(self, state: Account, message: Move) -> Decision[Account, Standing]:
        answered = Tell(ActorId(KIND, message.to), Receive(f"in {message.op}", message.amount))
        return self._post(state, message.op, -message.amount, effects=[answered])

    @handles(Receive)
    def receive(self, state: Account, message: Receive) -> Decision[Account, Standing]:
        return self._post(state, message.op, message.amount)

    @handles(Mark)
    def mark(self, state: Account, message: Mark) -> Decision[Account, Standing]:
        records = (Seal(message.op), MarkRow(state.key, message.op))
        return Decision(state, (state.count, state.total), records)

    @handles(Peek)
    def peek(self, state: Account, message: Peek) -> Decision[Account, Standing]:
        return Decision(state, (state.count, state.total))

    @handles(Count)
    async def count(self, state: Account, message: Count) -> Decision[Account, Standing]:
        if state.key in self._inside:
            self._found(f"turns overlap on {state.key}: {message.op}")
        self._inside[state.key] = message.op
        try:
            await asyncio.sleep(0.01 * message.amount)
            await self._connection.rows("sim_accounts", [state.key])
        finally:
            del self._inside[state.key]
        if message.amount:
            return self._post(state, message.op, message.amount)
        return Decision(state, (state.count, state.total))

    @handles(Decline)
    def decline(self, state: Account, message: Decline) -> Decision[Account, Standing]:
        raise Refused(f"{state.count} {state.total}")

    @handles(Stumble)
    def stumble(self, state: Account, message: Stumble) -> Decision[Account, Standing]:
        raise ZeroDivisionError

    @handles(Consult)
    def consult(self, state: Account, message: Consult) -> Decision[Account, Standing]:
        effect = Perform(Look(state.key), key=f"look {state.key}")
        return Decision(state, Parked("look"), effects=[effect])

    @handles(Looked)
    def looked(self, state: Account, message: Looked) -> Decision[Account, None]:
        decision = self._post(state, message.op, 0)
        return replace(decision, reply=None, resolve={"look": decision.reply})
