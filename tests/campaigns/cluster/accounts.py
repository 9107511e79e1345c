"""The actors of the campaign on real servers: accounts that leave a posting for every change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.campaigns.cluster.linear import CREDIT
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision, Tell
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.database import Database
from tolsey.storage.tables import stored

KIND = "account"

SCHEMA = """
CREATE TABLE campaign_accounts (key text PRIMARY KEY, count bigint NOT NULL, total bigint NOT NULL);
CREATE TABLE campaign_deliveries (key text, op text, PRIMARY KEY (key, op));
-- Drawn while a slot's line is locked, by its commits as by those who take it: for one slot it is
-- the order in which all that happened.
CREATE SEQUENCE campaign_order;
CREATE TABLE campaign_postings (
    at     bigint PRIMARY KEY DEFAULT nextval('campaign_order'),
    key    text NOT NULL,
    n      bigint NOT NULL,
    op     text NOT NULL,
    amount bigint NOT NULL,
    owner  text NOT NULL
);
CREATE TABLE campaign_owners (
    at       bigint PRIMARY KEY DEFAULT nextval('campaign_order'),
    slot     int NOT NULL,
    epoch    bigint NOT NULL,
    owner    text,
    previous text
);
CREATE FUNCTION campaign_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO campaign_owners (slot, epoch, owner, previous)
    VALUES (NEW.slot, NEW.epoch, NEW.owner, OLD.owner);
    RETURN NULL;
END $$;
CREATE TRIGGER campaign_note AFTER UPDATE OF epoch ON slot_epochs
FOR EACH ROW EXECUTE FUNCTION campaign_note();
"""


def account(key: str) -> ActorId:
    return ActorId(KIND, key)


@stored("campaign_accounts", nobodys="Rows of tests.", key=("key",))
@dataclass(frozen=True, slots=True)
class AccountRow:
    key: str
    count: int
    total: int


@stored("campaign_deliveries", nobodys="Rows of tests.", key=("key", "op"), claim=True)
@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A claim: this operation may happen once."""

    key: str
    op: str


@stored("campaign_postings", nobodys="Rows of tests.")
@dataclass(frozen=True, slots=True)
class PostingRow:
    """The n-th change of an account, and the process that made it."""

    key: str
    n: int
    op: str
    amount: int
    owner: str


@dataclass(frozen=True, slots=True)
class Account:
    key: str
    count: int = 0
    total: int = 0


Standing = tuple[int, int]
"""How many changes an account has had, which is its version, and what they add up to."""


@dataclass(frozen=True, slots=True)
class PayIn(Message[Standing]):
    """A delivery from outside, which may come more than once."""

    op: str
    amount: int


@dataclass(frozen=True, slots=True)
class PayOnce(Message[Standing]):
    """Like a delivery, but nothing is claimed: whoever asks does not ask again by itself."""

    op: str
    amount: int


@dataclass(frozen=True, slots=True)
class PayOver(Message[Standing]):
    """Take an amount here and let it arrive at another account."""

    op: str
    amount: int
    to: str


@dataclass(frozen=True, slots=True)
class PaidOver(Message[Standing]):
    op: str
    amount: int


@dataclass(frozen=True, slots=True)
class LookUp(Message[Standing]):
    pass


class Accounts(Actor[Account]):
    kind = KIND

    def __init__(self, database: Database, owner: str, *, claims: bool = True) -> None:
        super().__init__()
        self._database = database
        self._owner = owner
        self._claims = claims

    async def load(self, keys: Sequence[str]) -> Mapping[str, Account]:
        rows = await self._database.fetch(
            "SELECT key, count, total FROM campaign_accounts WHERE key = ANY($1)", list(keys)
        )
        found = {row["key"]: Account(row["key"], row["count"], row["total"]) for row in rows}
        return {key: found.get(key, Account(key)) for key in keys}

    def changes(self, old: Account, new: Account) -> Iterable[Any]:
        if old != new:
            yield AccountRow(new.key, new.count, new.total)

    def _post(
        self, state: Account, op: str, amount: int, *, once: bool, effects: Sequence[Tell] = ()
    ) -> Decision[Account, Standing]:
        after = Account(state.key, state.count + 1, state.total + amount)
        posting = PostingRow(state.key, after.count, op, amount, self._owner)
        claims = (DeliveryRow(state.key, op),) if once and self._claims else ()
        return Decision(after, (after.count, after.total), (posting, *claims), effects)

    @handles(PayIn)
    def pay_in(self, state: Account, message: PayIn) -> Decision[Account, Standing]:
        return self._post(state, message.op, message.amount, once=True)

    @handles(PayOnce)
    def pay_once(self, state: Account, message: PayOnce) -> Decision[Account, Standing]:
        return self._post(state, message.op, message.amount, once=False)

    @handles(PayOver)
    def pay_over(self, state: Account, message: PayOver) -> Decision[Account, Standing]:
        answered = Tell(account(message.to), PaidOver(message.op + CREDIT, message.amount))
        return self._post(state, message.op, -message.amount, once=True, effects=(answered,))

    @handles(PaidOver)
    def paid_over(self, state: Account, message: PaidOver) -> Decision[Account, Standing]:
        """Nothing is claimed here: that a tell takes effect once is what is tested."""
        return self._post(state, message.op, message.amount, once=False)

    @handles(LookUp)
    def look_up(self, state: Account, _: LookUp) -> Decision[Account, Standing]:
        return Decision(state, (state.count, state.total))
