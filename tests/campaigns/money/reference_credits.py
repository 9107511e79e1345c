"""What an organization's credits must come to: rules/credits, said once more.

A second opinion, and a slow one: it keeps no sums, looks through everything each time, and knows of
accounts, entries and hashes nothing. What it says is compared with the real books.
"""

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from tests.campaigns.money.proofs import (
    Bought,
    Disputed,
    Ended,
    PeriodPaid,
    Proof,
    Refunded,
    month_later,
)

LATE = timedelta(days=3)
"""An allowance outlives its period so long, for a renewal whose event is late; as long as there is
a subscription to renew it."""
BONUSES = {"free": 0, "pro": 1_000_000, "max_5x": 3_000_000, "max_20x": 5_000_000}


class Refused(Exception):  # noqa: N818 - an answer
    """There is not enough, or nothing to do it with."""


@dataclass(eq=False)
class Lot:
    kind: str
    payment: str | None
    free: int
    expires_at: datetime
    granted_at: datetime
    name: str
    part: "Part | None" = None


@dataclass(eq=False)
class Part:
    """One grant of a payment: how much, up to which allowance, and what became of it."""

    lot: Lot
    brought: int
    reaches: int
    period: datetime | None
    removed: int = 0
    owed: int = 0
    expired: int = 0


@dataclass
class Pinned:
    lines: list[tuple[Lot, int]]
    used: int
    until: datetime

    @property
    def amount(self) -> int:
        return sum(amount for _, amount in self.lines)


@dataclass
class Payment:
    """What is known of a payment, and what it brought."""

    total: int = 0
    refunded: int = 0
    disputes: dict[str, tuple[int, int]] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    @property
    def brought(self) -> int:
        return sum(part.brought for part in self.parts)

    def to_remove(self) -> list[int]:
        """Tell how much of each thing it brought is not the customer's any more: rounded up once."""
        gone = self.refunded + sum(n for n, standing in self.disputes.values() if standing < 2)
        total = self.total or gone
        whole = -(-self.brought * min(gone, total) // total) if gone else 0
        found: list[int] = []
        so_far = 0
        for part in self.parts:
            so_far += part.brought
            found.append(-(-whole * so_far // self.brought) - sum(found))
        return found


STANDINGS = {"open": 0, "lost": 1, "won": 2}


class ReferenceCredits:
    """The credits of one organization."""

    def __init__(self) -> None:
        self.lots: list[Lot] = []
        self.holds: dict[str, Pinned] = {}
        self.payments: dict[str, Payment] = {}
        self.debt = 0
        self.period_start: datetime | None = None
        self.period_end: datetime | None = None
        self.allowance = 0
        self.subscription = ""
        self.over: frozenset[str] = frozenset()
        self.bonus_day = date.min
        self.went: Counter[str] = Counter()
        """What went where, in micro-USD: used, written off, expired, taken back, granted."""

    def seen(self, at: datetime) -> "ReferenceCredits":
        """Show the credits at a moment, without touching them."""
        other = self.copied()
        other.tick(at)
        return other

    def copied(self) -> "ReferenceCredits":
        """Make another of the same."""
        other = copy(self)
        parts = [part for one in self.payments.values() for part in one.parts]
        twins = {id(lot): copy(lot) for lot in (*self._all(), *(part.lot for part in parts))}
        same = {id(part): replace(part, lot=twins[id(part.lot)]) for part in parts}
        for lot in twins.values():
            lot.part = same.get(id(lot.part))
        other.lots = [twins[id(lot)] for lot in self.lots]
        other.holds = {
            id_: Pinned([(twins[id(lot)], n) for lot, n in one.lines], one.used, one.until)
            for id_, one in self.holds.items()
        }
        other.payments = {
            name: replace(
                one, disputes=dict(one.disputes), parts=[same[id(part)] for part in one.parts]
            )
            for name, one in self.payments.items()
        }
        other.went = Counter(self.went)
        return other

    @property
    def available(self) -> int:
        return sum(lot.free for lot in self.lots) - self.debt

    @property
    def held(self) -> int:
        return sum(one.amount for one in self.holds.values())

    def grants(self) -> Counter[tuple[str, str | None]]:
        """Sum what is left by kind and payment, pinned or not."""
        left: Counter[tuple[str, str | None]] = Counter()
        for lot in self.lots:
            left[lot.kind, lot.payment] += lot.free
        for one in self.holds.values():
            for lot, amount in one.lines:
                left[lot.kind, lot.payment] += amount
        return +left

    def tick(self, at: datetime, keep: str | None = None) -> None:
        """Let time pass: holds left alone end at their last cost, free credits expire."""
        for id_ in [name for name, one in self.holds.items() if one.until <= at and name != keep]:
            self._end(id_, self.holds[id_].used)
        self._tidy(at)

    # What people do.

    def spend(self, amount: int, at: datetime, plan: str) -> None:
        self.tick(at)
        self._need(amount, at, plan)
        self._burn(amount, "used")
        self._tidy(at)

    def hold(self, name: str, amount: int, at: datetime, until: datetime, plan: str) -> None:
        if name in self.holds:
            return
        self.tick(at)
        self._need(amount, at, plan)
        self.holds[name] = Pinned(self._take(amount), 0, until)
        self._tidy(at)

    def extend(
        self, name: str, amount: int, used: int, at: datetime, until: datetime, *, plan: str
    ) -> None:
        self.tick(at, name)
        if name not in self.holds:
            raise Refused
        self._need(amount, at, plan)
        one = self.holds[name]
        one.lines += self._take(amount)
        one.used, one.until = max(one.used, used), max(one.until, until)
        self._tidy(at)

    def settle(self, name: str, cost: int, at: datetime) -> tuple[int, int]:
        self.tick(at, name)
        if name not in self.holds:
            raise Refused
        paid = min(cost, self.holds[name].amount)
        self._end(name, cost)
        self._tidy(at)
        return paid, cost - paid

    def adjust(self, key: str, amount: int, at: datetime) -> None:
        self.tick(at)
        if amount > 0:
            self._grant(Lot("adjustment", None, amount, month_later(at, 12), at, key))
        elif -amount > self.available:
            raise Refused
        else:
            self._burn(-amount, "granted", -1)
        self._tidy(at)

    def bonus(self, day: date, at: datetime, plan: str) -> bool:
        if not BONUSES[plan] or day <= self.bonus_day:
            return False
        self.tick(at)
        return self._bonus(day, at, plan)

    def _bonus(self, day: date, at: datetime, plan: str) -> bool:
        if not BONUSES[plan] or day <= self.bonus_day:
            return False
        self.bonus_day = day
        self._grant(Lot("bonus", None, BONUSES[plan], month_later(at, 12), at, f"bonus:{day}"))
        self._tidy(at)
        return True

    # What the processor proves.

    def hear(self, proof: Proof | None, at: datetime) -> None:
        """Do what an event proves; once, however often it is proven."""
        match proof:
            case Bought(name, cents, total):
                self._fact(name, at, total=total)
                if not self.payments[name].brought:
                    self.tick(at)
                    ends = month_later(at, 12)
                    self._grant(Lot("purchase", name, cents * 10_000, ends, at, f"purchase:{name}"))
                    self._tidy(at)
            case PeriodPaid():
                self.period(proof, at)
            case Ended(subscription) if subscription not in self.over:
                self.over |= {subscription}
                if self.subscription == subscription:
                    self.tick(at)
            case Refunded(name, total, refunded):
                self._fact(name, at, total=total, refunded=refunded)
            case Disputed(name, dispute, amount, standing):
                self._fact(name, at, dispute=(dispute, amount, STANDINGS[standing]))

    def period(self, paid: PeriodPaid, at: datetime) -> bool:
        """Start a period, or top it up: once, and never one that began before."""
        name, begins_at = paid.invoice, paid.begins_at
        ends_at, allowance = paid.ends_at, paid.allowance
        known = self.period_start or begins_at
        is_same = ends_at == self.period_end
        is_new = self.period_end is None or (not is_same and begins_at > known)
        more = allowance - (0 if is_new else self.allowance)
        if is_same and not is_new and more <= 0:
            return self._lies_below(paid, at)
        if not is_new and not is_same:
            return False
        self._fact(name, at, total=paid.total)
        self.tick(at)
        if is_new:
            for lot in self._all():
                if lot.kind == "allowance":
                    self._expire(lot)
                    lot.expires_at = min(lot.expires_at, at)
        self.period_start = begins_at if is_new else max(begins_at, known)
        self.period_end, self.allowance, self.subscription = ends_at, allowance, paid.subscription
        self._grant(Lot("allowance", name, more, ends_at, at, f"allowance:{name}"), allowance)
        self._tidy(at)
        return True

    def _lies_below(self, paid: PeriodPaid, at: datetime) -> bool:
        """Tell whose a part is of what a dearer payment of the period was granted before it."""
        for name, known in self.payments.items():
            for part in known.parts:
                lowest = part.reaches - part.brought
                if part.period == self.period_end and lowest < paid.allowance < part.reaches:
                    self._divide(name, part, paid, at)
                    return True
        return False

    def _divide(self, name: str, part: Part, paid: PeriodPaid, at: datetime) -> None:
        self._fact(paid.invoice, at, total=paid.total)
        self.tick(at)
        lot = part.lot
        pinned = sum(n for one in self.holds.values() for of, n in one.lines if of is lot)
        amount = paid.allowance - (part.reaches - part.brought)
        amount = min(amount, part.brought - pinned)
        if amount <= 0:
            return
        part.brought -= amount
        self._reconcile(name, at)
        spent = part.brought + amount - lot.free - pinned - part.expired
        unspent = max(0, amount - (spent - part.removed + part.owed))  # who came first spent first
        free = min(unspent, lot.free)
        expired = min(unspent - free, part.expired)
        lot.free -= free
        part.expired -= expired
        own = Lot("allowance", paid.invoice, free, lot.expires_at, at, f"allowance:{paid.invoice}")
        own.part = Part(own, amount, paid.allowance, self.period_end, expired=expired)
        self._add(own)
        self.payments[paid.invoice].parts.append(own.part)
        self._reconcile(paid.invoice, at)
        self._tidy(at)

    # How.

    def _fact(
        self,
        name: str,
        at: datetime,
        *,
        total: int = 0,
        refunded: int = 0,
        dispute: tuple[str, int, int] | None = None,
    ) -> None:
        known = self.payments.setdefault(name, Payment())
        was = (known.total, known.refunded, dict(known.disputes))
        known.total, known.refunded = max(known.total, total), max(known.refunded, refunded)
        if dispute is not None:
            id_, amount, standing = dispute
            before = known.disputes.get(id_, (0, 0))
            known.disputes[id_] = max(before[0], amount), max(before[1], standing)
        if was != (known.total, known.refunded, known.disputes):
            self.tick(at)
            self._reconcile(name, at)
            self._tidy(at)

    def _reconcile(self, name: str, at: datetime) -> None:
        known = self.payments[name]
        for part, share in zip(known.parts, known.to_remove(), strict=True):
            more, part.removed = share - part.removed, share
            self.went["taken back"] += more
            if more > 0:
                late = min(more, part.expired)
                part.expired -= late
                self.went["expired"] -= late
                owed = self._burn(more - late, "gone", of=name)
                part.owed += owed
                self.debt += owed
            elif more < 0:
                self._give_back(part, -more, at)

    def _give_back(self, part: Part, amount: int, at: datetime) -> None:
        """Give back what had been spent for good, and the rest as long as its time is not over."""
        owed = min(amount, part.owed)
        part.owed -= owed
        still = min(owed, self.debt)
        self.debt -= still
        if owed > still:
            self._add(Lot("adjustment", None, owed - still, month_later(at, 12), at, "restored"))
        lot, rest = part.lot, amount - owed
        lot.free += rest
        if lot not in self.lots:
            self._add(lot)
        if self._lapses(lot) <= at or part.period not in {None, self.period_end}:
            self.went["expired"] += rest
            part.expired += rest
            lot.free -= rest

    def _expire(self, lot: Lot) -> None:
        self.went["expired"] += lot.free
        if lot.part is not None:
            lot.part.expired += lot.free
        lot.free = 0

    def _grant(self, lot: Lot, reaches: int = 0) -> None:
        self._add(lot)
        self.went["granted"] += lot.free
        if lot.payment is not None:
            known = self.payments.setdefault(lot.payment, Payment())
            period = self.period_end if lot.kind == "allowance" else None
            lot.part = Part(lot, lot.free, reaches, period)
            known.parts.append(lot.part)
            self._reconcile(lot.payment, lot.granted_at)

    def _add(self, lot: Lot) -> None:
        self.lots.append(lot)
        self.lots.sort(key=lambda one: (one.expires_at, one.granted_at, one.name))

    def _need(self, amount: int, at: datetime, plan: str) -> None:
        """Refuse what is not there; the day's bonus comes with the first use of the day."""
        day = at.astimezone(UTC).date()
        bonus = BONUSES[plan] if day > self.bonus_day else 0
        if amount and amount > self.available + bonus:
            raise Refused
        self._bonus(day, at, plan)

    def _take(self, amount: int, of: str | None = None) -> list[tuple[Lot, int]]:
        """Take free credits, those that expire first before the others; as far as they go."""
        taken = []
        for lot in self.lots:
            if of is None or lot.payment == of:
                part = min(amount, lot.free)
                lot.free -= part
                amount -= part
                if part:
                    taken.append((lot, part))
        return taken

    def _burn(self, amount: int, into: str, sign: int = 1, of: str | None = None) -> int:
        gone = sum(part for _, part in self._take(amount, of))
        self.went[into] += sign * gone
        return amount - gone

    def _end(self, name: str, cost: int) -> None:
        one = self.holds.pop(name)
        self.went["used"] += cost
        self.went["written off"] += max(0, cost - one.amount)
        for lot, pinned in one.lines:
            paid = min(cost, pinned)
            cost -= paid
            lot.free += pinned - paid
            if lot not in self.lots:
                self._add(lot)

    def _tidy(self, at: datetime) -> None:
        """Pay debts of what is free, then let expire what is due."""
        if self.debt:
            self.debt = self._burn(self.debt, "repaid")
        for lot in self.lots:
            if self._lapses(lot) <= at:
                self._expire(lot)
        pinned = {id(lot) for one in self.holds.values() for lot, _ in one.lines}
        self.lots = [lot for lot in self.lots if lot.free or id(lot) in pinned]

    def _lapses(self, lot: Lot) -> datetime:
        """Tell when a lot is gone."""
        is_renewed = lot.kind == "allowance" and self.subscription not in self.over
        late = is_renewed and lot.expires_at == self.period_end
        return lot.expires_at + LATE if late else lot.expires_at

    def _all(self) -> Iterable[Lot]:
        """List the lots, those too of which all is pinned."""
        found = {id(lot): lot for lot in self.lots}
        for one in self.holds.values():
            found |= {id(lot): lot for lot, _ in one.lines}
        return list(found.values())
