"""Writing the ledger: an entry is drafted over the credits, moves value, and is sealed at its end.

Every movement goes from one account into another, so the books balance by construction. Accounts:
`lot:<id>` (what is free of it), `held:<hold>`, `debt`, `cash`, `promo`, `usage`, `expired`,
`refunded`, `clawback`, `writeoff` (rules/credits#ledger).
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from tolsey.actors.chain import Move, sealed
from tolsey.actors.organization.ledger import parts
from tolsey.actors.organization.ledger.credits import (
    BrokenBooks,
    Credits,
    Hold,
    awaited,
    due_at,
    lapses_at,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, PaymentRequired
from tolsey.storage.records.money.credits import (
    CreditedPayment,
    CreditEntry,
    CreditLot,
    postings,
)

Written = tuple[OrganizationState, list[Any]]
"""The state after an entry, and the rows that tell of it."""


class Draft:
    """One entry while it is written: the credits as they become, and the movements so far."""

    __slots__ = (
        "allowance",
        "at",
        "before",
        "bonus_day",
        "closed",
        "credited",
        "debt",
        "due_at",
        "free",
        "held",
        "holds",
        "lots",
        "moves",
        "payments",
        "period_end",
        "period_start",
        "records",
        "renewed_by",
        "seq",
        "state",
    )

    def __init__(self, state: OrganizationState, at: datetime, records: list[Any]) -> None:
        before = state.credits
        self.state = state
        self.before = before
        self.at = at
        self.records = records
        self.moves: list[Move] = []
        self.seq = before.seq + 1
        self.free, self.held, self.debt = before.free, before.held, before.debt
        self.due_at = before.due_at
        self.lots, self.holds, self.payments = before.lots, before.holds, before.payments
        self.closed: dict[str, CreditLot] = {}
        self.credited: dict[str, CreditedPayment] = {}
        self.period_start, self.period_end = before.period_start, before.period_end
        self.allowance, self.renewed_by = before.allowance, before.renewed_by
        self.bonus_day = before.bonus_day

    def lapses_at(self, lot: CreditLot) -> datetime:
        """Tell when a lot is let go of."""
        return lapses_at(lot, self._awaited)

    def require(self, amount: int) -> None:
        """Refuse what is not available."""
        available = self.free - self.debt
        if amount > available:
            raise PaymentRequired(
                "Your credit balance is too low for this. Buy credits or upgrade your plan.",
                code="insufficient_credits",
                required=amount,
                available=available,
            )

    def grant(self, lot: CreditLot, source: str) -> None:
        """Open a lot with value out of an account."""
        self.refill(replace(lot, remaining=0), lot.amount, source)

    def refill(self, lot: CreditLot, amount: int, source: str) -> None:
        """Put value back into a lot, which may have been used up."""
        if amount:
            self._move(f"lot:{lot.id}", source, amount)
            self._put(lot, lot.remaining + amount, lot.pinned)
            self.free += amount
            self.due_at = min(self.due_at, self.lapses_at(lot))

    def split(self, lot: CreditLot, part: CreditLot) -> None:
        """Make a lot of its own of a part of another, with what is left of it."""
        self._move(f"lot:{part.id}", f"lot:{lot.id}", part.remaining)
        self._put(part, part.remaining, part.pinned)
        rest = replace(lot, amount=lot.amount - part.amount)
        self._put(rest, lot.remaining - part.remaining, lot.pinned)

    def burn(self, amount: int, into: str, only: Callable[[CreditLot], bool] | None = None) -> int:
        """Move free value into an account, in spending order; answer what was not there to move."""
        for lot, taken in self._portions(amount, only):
            self._move(into, f"lot:{lot.id}", taken)
            self._put(lot, lot.remaining - taken, lot.pinned)
            self.free -= taken
            amount -= taken
        return amount

    def owe(self, amount: int, to: str) -> None:
        """Move value into an account that nobody has: a debt."""
        self._move(to, "debt", amount)
        self.debt += amount

    def forgive(self, amount: int, source: str) -> int:
        """Pay a debt out of an account, as far as there is one; answer how much of it."""
        forgiven = min(amount, self.debt)
        self._move("debt", source, forgiven)
        self.debt -= forgiven
        return forgiven

    def pin(
        self, hold_id: str, amount: int, only: Callable[[CreditLot], bool] | None = None
    ) -> tuple[tuple[str, int], ...]:
        """Pin free value for a hold, in spending order; answer how much of which lot."""
        portions = self._portions(amount, only)
        for lot, taken in portions:
            self._move(f"held:{hold_id}", f"lot:{lot.id}", taken)
            self._put(lot, lot.remaining, lot.pinned + taken)
        self.free -= amount
        self.held += amount
        return tuple((lot.id, taken) for lot, taken in portions)

    def end(self, hold: Hold, cost: int) -> tuple[int, int]:
        """End a hold: pay its cost, free the rest; answer what was paid and what was written off.

        What a hold does not cover is never taken from elsewhere (rules/credits#holds).
        """
        charged = left = min(cost, hold.amount)
        account = f"held:{hold.id}"
        self._move("usage", account, charged)
        self._move("usage", "writeoff", cost - charged)
        for lot_id, pinned in hold.lines:
            lot, paid = self.lots[lot_id], min(left, pinned)
            left -= paid
            self._move(f"lot:{lot_id}", account, pinned - paid)
            self._put(lot, lot.remaining - paid, lot.pinned - pinned)
            if pinned > paid:
                self.due_at = min(self.due_at, self.lapses_at(lot))
        self.held -= hold.amount
        self.free += hold.amount - charged
        self.holds = {id: one for id, one in self.holds.items() if id != hold.id}
        ended = replace(hold, used=cost).record(self.state.organization_id, self.at)
        self.records.append(ended)
        return charged, cost - charged

    def reclassify(self, amount: int, debit: str, credit: str) -> None:
        """Move between two accounts that are not the organization's own."""
        self._move(debit, credit, amount)

    def keep_hold(self, hold: Hold) -> None:
        """Remember a hold as it is now."""
        self.holds = {**self.holds, hold.id: hold}
        self.due_at = min(self.due_at, hold.lease_until)

    def keep_payment(self, payment: CreditedPayment) -> None:
        """Remember what is known of a payment."""
        self.payments = self.payments.insert(payment.payment_ref, payment)
        self.credited[payment.payment_ref] = payment

    def expire_lot(self, lot: CreditLot) -> None:
        """End a lot now: what is free of it expires, what is pinned does when it is free again."""
        free = lot.free
        self._move("expired", f"lot:{lot.id}", free)
        self._put(replace(lot, expires_at=min(lot.expires_at, self.at)), lot.pinned, lot.pinned)
        self.free -= free
        payment = self.payments.get(lot.reference or "")
        if free and payment is not None:
            self.keep_payment(parts.with_expired(payment, lot.id, free))

    def close(self, key: str, kind: str, reference: str | None = None) -> Written:
        """Seal the entry. What became free has paid debts first, then expired if it was due."""
        self.let_go()
        return self.seal(key, kind, reference)

    def close_if_moved(self, key: str, kind: str, reference: str | None = None) -> Written:
        """Seal the entry where it moved value; else keep what changed, without one."""
        return self.close(key, kind, reference) if self.moves else self.unsealed()

    def let_go(self) -> None:
        """Pay debts of what is free, then let expire what is due."""
        if self.debt and self.free:
            repaid = min(self.debt, self.free)
            self.burn(repaid, "debt")
            self.debt -= repaid
        if self.at >= self.due_at:
            for lot in takewhile(lambda one: one.expires_at <= self.at, self.lots.after(None)):
                if lot.free and self.lapses_at(lot) <= self.at:
                    self.expire_lot(lot)
            self.due_at = self.next_due

    def seal(self, key: str, kind: str, reference: str | None = None) -> Written:
        """Write the entry as it is, onto the chain."""
        organization_id = self.state.organization_id
        row = (organization_id, self.seq, key, kind, reference, self.at)
        chained = sealed(self.before.hash, row, self.moves)
        self.records.append(
            CreditEntry(
                organization_id=organization_id,
                seq=self.seq,
                key=key,
                kind=kind,
                reference=reference,
                at=self.at,
                hash=chained,
            )
        )
        self.records += postings(organization_id, self.seq, self.moves)
        return self._state(self.seq, chained), self.records

    @property
    def next_due(self) -> datetime:
        """Tell when the next lot lapses or the next hold is left alone."""
        return due_at(self.lots, self.holds, self._awaited)

    @property
    def _awaited(self) -> datetime | None:
        return awaited(self.period_end, self.renewed_by)

    def unsealed(self) -> Written:
        """Keep what moved no value, without an entry."""
        return self._state(self.before.seq, self.before.hash), self.records

    def _state(self, seq: int, chained: str) -> OrganizationState:
        self.records.extend(self.closed.values())
        self.records.extend(self.credited.values())
        after = Credits(
            seq,
            chained,
            self.free,
            self.held,
            self.debt,
            self.due_at,
            self.period_start,
            self.period_end,
            self.allowance,
            self.renewed_by,
            self.bonus_day,
            self.lots,
            self.holds,
            self.payments,
        )
        return self.state.with_credits(after)

    def _portions(
        self, amount: int, only: Callable[[CreditLot], bool] | None = None
    ) -> list[tuple[CreditLot, int]]:
        """Say how much of which lot makes up an amount, as far as it can."""
        found: list[tuple[CreditLot, int]] = []
        for lot in self.lots.after(None):
            if not amount:
                break
            free = lot.remaining - lot.pinned
            if free and (only is None or only(lot)):
                taken = min(amount, free)
                found.append((lot, taken))
                amount -= taken
        return found

    def _put(self, lot: CreditLot, remaining: int, pinned: int) -> None:
        # No more is pinned of a lot than is left of it (rules/credits#invariants).
        if not 0 <= pinned <= remaining <= lot.amount:
            raise BrokenBooks(f"lot {lot.id}: {pinned} of {remaining} of {lot.amount}")
        put = CreditLot(
            organization_id=lot.organization_id,
            id=lot.id,
            kind=lot.kind,
            reference=lot.reference,
            amount=lot.amount,
            remaining=remaining,
            pinned=pinned,
            granted_at=lot.granted_at,
            expires_at=lot.expires_at,
            seq=self.seq,
        )
        if remaining:
            self.lots = self.lots.put(put)
            self.closed.pop(lot.id, None)
        else:
            if lot.id in self.lots:
                self.lots = self.lots.without(lot.id)
            self.closed[lot.id] = put

    def _move(self, debit: str, credit: str, amount: int) -> None:
        if amount:
            self.moves.append((debit, credit, amount))


def opened(state: OrganizationState, at: datetime, keep: str | None = None) -> Draft:
    """Start an entry over credits from which all is gone that was due before.

    `keep` names a hold that is not ended for having been left alone: it is heard of just now.
    """
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    if at < state.credits.due_at:
        return Draft(state, at, [])
    current, records = lapsed(state, at, keep)
    return Draft(current, at, records)


def lapsed(state: OrganizationState, at: datetime, keep: str | None = None) -> Written:
    """End holds that were left alone at the cost they last reported, then expire what is due.

    Each is an entry of its own, so that what was used is never told as expired.
    """
    records: list[Any] = []
    for hold in state.credits.holds.values():
        if hold.lease_until <= at and hold.id != keep:
            draft = Draft(state, at, records)
            draft.end(hold, hold.used)
            state, records = draft.seal(*ending(hold.id, hold.used))
    draft = Draft(state, at, records)
    draft.let_go()
    return draft.seal(f"lapse:{draft.seq}", "lapse") if draft.moves else draft.unsealed()


def ending(hold_id: str, cost: int) -> tuple[str, str, str]:
    """Name the one entry that ends a hold: its key, kind and reference."""
    return f"settle:{hold_id}", "settle" if cost else "release", hold_id
