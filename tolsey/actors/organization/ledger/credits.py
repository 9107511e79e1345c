"""An organization's credits as a value: what is open, pinned and owed (rules/credits#ledger)."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from rpds import HashTrieMap

from tolsey.actors.chain import GENESIS
from tolsey.actors.organization.ledger.messages import (
    CreditsView,
    Grant,
    GrantKind,
    ReadCredits,
    Standing,
)
from tolsey.actors.organization.ledger.open_lots import OpenLots, spending_order
from tolsey.actors.organization.months import months_after
from tolsey.storage.records.money.credits import (
    CreditAccount,
    CreditedPayment,
    CreditHold,
    CreditLot,
)

NEVER: Final = datetime.max.replace(tzinfo=UTC)

ALLOWANCE: Final = "allowance"
ALLOWANCE_GRACE: Final = timedelta(days=3)
"""A renewal's event may come this late (rules/credits#grants): until then the allowance stands,
as long as there is somebody to renew it."""


NO_PAYMENTS: "Final[HashTrieMap[str, CreditedPayment]]" = HashTrieMap()


class BrokenBooks(Exception):  # noqa: N818 - what they are
    """Credits that cannot be: the turn that made them fails, and changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Credits pinned for something in use: `lines` says how much of which lot, in spending order."""

    id: str
    lines: tuple[tuple[str, int], ...]
    amount: int
    used: int
    lease_until: datetime

    def record(self, organization_id: str, closed_at: datetime | None = None) -> CreditHold:
        """Write the hold down."""
        lines = json.dumps(self.lines)
        return CreditHold(
            organization_id=organization_id,
            id=self.id,
            amount=self.amount,
            lines=lines,
            used=self.used,
            lease_until=self.lease_until,
            closed_at=closed_at,
        )


@dataclass(frozen=True, slots=True)
class Credits:
    """What an organization has, owes and has pinned, in micro-USD, after ledger entry `seq`.

    Only lots with something left, live holds, and payments that were touched or wait for their
    grant are here.
    While there is a debt nothing is free: what becomes free pays it first.
    """

    seq: int = 0
    hash: str = GENESIS
    free: int = 0
    held: int = 0
    debt: int = 0
    due_at: datetime = NEVER
    """Nothing expires and no hold is left alone before this moment."""
    period_start: datetime | None = None
    period_end: datetime | None = None
    allowance: int = 0
    """What the plan's period was granted that ends at `period_end`; a part of it that was paid
    later began at `period_start`."""
    renewed_by: str | None = None
    """Who is to renew the allowance (a subscription's id, or `contract`); nobody once that ended."""
    bonus_day: date = date.min
    """The last day that was granted its bonus."""
    lots: OpenLots = field(default_factory=OpenLots)
    holds: Mapping[str, Hold] = field(default_factory=dict)
    payments: "HashTrieMap[str, CreditedPayment]" = NO_PAYMENTS

    def __post_init__(self) -> None:
        # Nothing of the books is ever below zero (rules/credits#invariants).
        if self.free < 0 or self.held < 0 or self.debt < 0:
            raise BrokenBooks(f"free {self.free}, held {self.held}, debt {self.debt}")

    @property
    def available(self) -> int:
        """What can be spent; below zero when a debt is owed."""
        return self.free - self.debt

    @property
    def standing(self) -> Standing:
        """Sum up."""
        available = self.available
        return Standing(
            seq=self.seq, balance=available + self.held, available=available, held=self.held
        )

    def view(self, message: ReadCredits) -> CreditsView:
        """Show the credits to a member, with the part of the grants that is asked for."""
        shown = partial(self._shown, at=message.at)
        part = list(islice(self.lots.after(message.after), message.limit + 1))
        is_last = len(part) <= message.limit
        part = part[: message.limit]
        first = next(self.lots.after(None), None)
        next_expiry = earliest(self.lots, lambda lot: shown(lot).expires_at)
        return CreditsView(
            standing=self.standing,
            grants=tuple(map(shown, part)),
            next_expiry=None if next_expiry == NEVER else next_expiry,
            total=len(self.lots),
            first=shown(first) if first else None,
            following=None if is_last else spending_order(part[-1]),
        )

    def _shown(self, lot: CreditLot, at: datetime) -> Grant:
        """Show a grant: an allowance ends with its period, if its renewal is told in time."""
        is_over = lot.expires_at <= at
        ends_at = lapses_at(lot, awaited(self.period_end, self.renewed_by))
        return Grant(
            id=lot.id,
            kind=cast("GrantKind", lot.kind),
            amount=lot.amount,
            remaining=lot.remaining,
            granted_at=lot.granted_at,
            expires_at=ends_at if is_over else lot.expires_at,
            reference=lot.reference,
        )


NONE: Final = Credits()


def awaited(period_end: datetime | None, renewed_by: str | None) -> datetime | None:
    """Tell when the period ends whose renewal may be told late; None when nobody is to renew it."""
    return None if renewed_by is None else period_end


def lapses_at(lot: CreditLot, renewal: datetime | None) -> datetime:
    """Tell when a lot is let go of: the allowance waits for a `renewal` that is awaited."""
    waits = lot.kind == ALLOWANCE and lot.expires_at == renewal
    return lot.expires_at + ALLOWANCE_GRACE if waits else lot.expires_at


def due_at(lots: OpenLots, holds: Mapping[str, Hold], renewal: datetime | None) -> datetime:
    """Tell when the next lot lapses or the next hold is left alone."""
    lapse = earliest(lots, lambda lot: lapses_at(lot, renewal))
    return min([lapse, *(hold.lease_until for hold in holds.values())])


def earliest(lots: OpenLots, ends_at: Callable[[CreditLot], datetime]) -> datetime:
    """Tell when the first lot ends of which something is free; `ends_at` is never before its expiry."""
    found = NEVER
    for lot in lots.after(None):
        if lot.expires_at >= found:
            break
        if lot.free:
            found = min(found, ends_at(lot))
    return found


def hold_of(record: CreditHold) -> Hold:
    """Read a hold back."""
    lines = tuple((str(lot_id), int(amount)) for lot_id, amount in json.loads(record.lines))
    return Hold(
        id=record.id,
        lines=lines,
        amount=record.amount,
        used=record.used,
        lease_until=record.lease_until,
    )


def twelve_months_after(at: datetime) -> datetime:
    """Tell when credits granted now expire; 29 February ends on the 28th."""
    return months_after(at, 12)


def changes(organization_id: str, old: Credits, new: Credits) -> Iterator[Any]:
    """List the rows that say what changed; payments and what ended were written by their turns."""
    if old is new:
        return
    yield CreditAccount(
        organization_id=organization_id,
        seq=new.seq,
        hash=new.hash,
        debt=new.debt,
        period_start=new.period_start,
        period_end=new.period_end,
        allowance=new.allowance,
        renewed_by=new.renewed_by,
    )
    if new.lots is not old.lots:
        yield from new.lots.moved_after(old.seq)
    if new.holds is not old.holds:
        for id, hold in new.holds.items():
            if old.holds.get(id) is not hold:
                yield hold.record(organization_id)
