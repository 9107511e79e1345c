"""A ledger whose rows are kept as the database would keep them, without one."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from tolsey.actors import chain
from tolsey.actors.organization.agreements import contracts
from tolsey.actors.organization.agreements.messages import SetContract, StartMonth
from tolsey.actors.organization.ledger import bonuses, credits, holds, lots, payments
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    Dispute,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    GrantDailyBonus,
    HoldCredits,
    PaymentObserved,
    ReadCredits,
    ReleaseHold,
    ResetAllowance,
    SettleHold,
    SpendCredits,
)
from tolsey.actors.organization.ledger.part import opened
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.errors import Duplicate
from tolsey.storage.money.credits import Books
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.records.money.credits import (
    CreditAccount,
    CreditedPayment,
    CreditEntry,
    CreditHold,
    CreditLot,
    CreditPosting,
    DailyBonus,
    MonthlyReset,
)

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
DOLLAR = 1_000_000


class Unrenewed(NamedTuple):
    """Whoever was to renew the allowance has ended."""

    renewed_by: str
    at: datetime


TURNS: dict[type[Any], Any] = {
    GrantCredits: lots.grant,
    ResetAllowance: lots.reset_allowance,
    AdjustCredits: lots.adjust,
    SpendCredits: lots.spend,
    ExpireCredits: lots.expire,
    ReadCredits: lots.read,
    HoldCredits: holds.hold,
    ExtendHold: holds.extend,
    SettleHold: holds.settle,
    ReleaseHold: holds.release,
    PaymentObserved: payments.observe,
    GrantDailyBonus: bonuses.grant,
    StartMonth: contracts.start_month,
    SetContract: contracts.agree,
    Unrenewed: lambda state, answered: lots.unrenewed(state, *answered),
}


def days(number: float) -> timedelta:
    return timedelta(days=number)


def purchase(ref: str, dollars: int, at: datetime = AT) -> GrantCredits:
    ends = credits.twelve_months_after(at)
    return GrantCredits(
        key=f"purchase:{ref}",
        kind="purchase",
        amount=dollars * DOLLAR,
        at=at,
        expires_at=ends,
        reference=ref,
    )


def seen(
    ref: str, total: int, refunded: int = 0, *disputes: Dispute, at: datetime = AT
) -> PaymentObserved:
    return PaymentObserved(
        payment_ref=ref, credits=0, total=total, refunded=refunded, disputes=disputes, at=at
    )


def remembered(
    payments: Iterable[CreditedPayment], lots: list[CreditLot], account: CreditAccount | None
) -> list[CreditedPayment]:
    """List the payments that are read when an organization wakes, as `storage.money.credits` does."""
    open_ = {lot.reference for lot in lots}
    ends = {account.period_end} if account and account.period_end else set()
    return [
        one
        for one in payments
        if not one.granted or one.payment_ref in open_ or one.expires_at in ends
    ]


class Ledger:
    """What an organization decides, and the rows that it leaves."""

    def __init__(self, plan: str = "free") -> None:
        self.state = OrganizationState("org_1", plan)
        self.account: CreditAccount | None = None
        self.entries: list[CreditEntry] = []
        self.postings: list[CreditPosting] = []
        self.lots: dict[str, CreditLot] = {}
        self.holds: dict[str, CreditHold] = {}
        self.payments: dict[str, CreditedPayment] = {}
        self.resets: list[MonthlyReset] = []
        self.bonuses: list[DailyBonus] = []
        self.contracts: list[Contract] = []
        self.audit: list[AuditRecord] = []

    def take(self, message: Any) -> Any:
        """Take a turn and commit it. Raises Duplicate as the commit would."""
        paid = getattr(message, "paid", None) or message
        known = self._knowing(getattr(paid, "payment_ref", getattr(paid, "reference", None)))
        decision = TURNS[type(message)](known, message)
        if decision.state is known:
            assert not decision.records
            return decision.reply
        keys = {entry.key for entry in self.entries}
        if any(isinstance(one, CreditEntry) and one.key in keys for one in decision.records):
            raise Duplicate(type(message).__name__)
        changed = credits.changes("org_1", self.state.credits, decision.state.credits)
        for record in (*decision.records, *changed):
            self._write(record)
        self.state = decision.state
        return decision.reply

    def crash(self) -> None:
        """Lose the memory and read it back."""
        lots = [lot for lot in self.lots.values() if lot.remaining]
        books = Books(
            account=self.account,
            lots=lots,
            holds=[hold for hold in self.holds.values() if hold.closed_at is None],
            payments=remembered(self.payments.values(), lots, self.account),
            bonus_day=max((bonus.day for bonus in self.bonuses), default=date.min),
        )
        self.state = replace(self.state, credits=opened(books))

    @property
    def pairs(self) -> list[chain.Entry]:
        return [
            (entry, [one for one in self.postings if one.seq == entry.seq])
            for entry in self.entries
        ]

    @property
    def accounts(self) -> dict[str, int]:
        return chain.replayed(self.postings)

    def events(self) -> list[str]:
        return [one.event for one in self.audit]

    def check(self) -> None:
        """Hold the books against rules/credits#invariants."""
        now, accounts = self.state.credits, self.accounts
        assert sum(accounts.values()) == 0
        for lot in self.lots.values():
            assert 0 <= lot.pinned <= lot.remaining <= lot.amount
            assert accounts.get(f"lot:{lot.id}", 0) == lot.remaining - lot.pinned
        assert {name for name in accounts if name.startswith("lot:")} <= {
            f"lot:{id}" for id in self.lots
        }
        for hold in self.holds.values():
            pinned = 0 if hold.closed_at else hold.amount
            assert accounts.get(f"held:{hold.id}", 0) == pinned
        assert now.held == sum(hold.amount for hold in now.holds.values())
        for lot in now.lots.values():
            lines = (line for hold in now.holds.values() for line in hold.lines)
            assert lot.pinned == sum(amount for id, amount in lines if id == lot.id)
        assert now.free == sum(lot.free for lot in now.lots.values())
        assert now.debt == -accounts.get("debt", 0) >= 0
        assert not (now.debt and now.free)
        assert now.debt <= accounts.get("refunded", 0) + accounts.get("clawback", 0)
        for payment in self.payments.values():
            assert 0 <= payment.refund_removed + payment.dispute_removed <= payment.granted
        assert accounts.get("refunded", 0) == sum(
            one.refund_removed for one in self.payments.values()
        )
        assert accounts.get("clawback", 0) == sum(
            one.dispute_removed for one in self.payments.values()
        )
        assert chain.broken_at(self.pairs, now.hash) is None
        assert self.account == CreditAccount(
            organization_id="org_1",
            seq=now.seq,
            hash=now.hash,
            debt=now.debt,
            period_start=now.period_start,
            period_end=now.period_end,
            allowance=now.allowance,
            renewed_by=now.renewed_by,
        ) or (self.account is None and now == credits.NONE)

    def _knowing(self, ref: str | None) -> OrganizationState:
        known = self.state.credits.payments
        if ref is None or ref in known or ref not in self.payments:
            return self.state
        kept = known.insert(ref, self.payments[ref])
        return replace(self.state, credits=replace(self.state.credits, payments=kept))

    def _write(self, record: Any) -> None:
        match record:
            case CreditAccount():
                self.account = record
            case CreditEntry():
                self.entries.append(record)
            case CreditPosting():
                assert record.amount > 0
                assert record.debit != record.credit
                self.postings.append(record)
            case CreditLot():
                self.lots[record.id] = record
            case CreditHold():
                self.holds[record.id] = record
            case CreditedPayment():
                self.payments[record.payment_ref] = record
            case MonthlyReset():
                self.resets.append(record)
            case DailyBonus():
                assert record.day not in {bonus.day for bonus in self.bonuses}
                self.bonuses.append(record)
            case Contract():
                self.contracts.append(record)
            case _:
                self.audit.append(record)
