"""One organization's life, drawn from a seed: what people, banks and time do, and the judge of it.

A life is a generator: it gives out steps and is sent their answers, so that the same life is lived
on paper or on the real service. After each answer `reference_credits` says what it must have been.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.campaigns.money.bank import Bank
from tests.campaigns.money.proofs import Ended, Happened, PeriodPaid, hours
from tests.campaigns.money.reference_credits import ReferenceCredits, Refused
from tests.campaigns.money.steps import Answer, Applied, Ask, Life, Send, Wait, Wrong
from tolsey.actors.organization.agreements.messages import PaidPeriod, StartMonth
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    ExpireCredits,
    ExtendHold,
    GrantDailyBonus,
    HoldCredits,
    ReadCredits,
    ReleaseHold,
    SettleHold,
    SpendCredits,
)
from tolsey.storage.records.money.subscription import SubscriptionRecord

Look = Callable[[], tuple[str, SubscriptionRecord | None]]
"""Reads the plan and the subscription as they are written."""

AT_BANK = (
    *("buy_credits", "buy_credits", "buy_credits", "subscribe", "subscribe", "upgrade", "upgrade"),
    *("downgrade", "cancel", "settle_owed", "arrive", "refund", "dispute", "judge", "judge"),
)
HERE = (
    *("spend", "spend", "spend", "hold", "hold", "extend", "settle", "settle", "release"),
    *("adjust", "bonus", "month", "sweep", "again"),
)


class Person:
    """Lives a life and judges what it is answered."""

    def __init__(self, seed: object, bank: Bank, clock: Callable[[], datetime], look: Look) -> None:
        self.chance = random.Random(f"life {seed}")  # noqa: S311 - a life that can be lived again
        self.bank = bank
        self.reference_credits = ReferenceCredits()
        self.seen: Counter[str] = Counter()
        self._clock = clock
        self._look = look
        self._pool: list[Happened] = []
        self._told: set[str] = set()
        self._holds: list[str] = []
        self._done: list[Any] = []
        self._number = 0
        self._plan = "free"

    def live(self, steps: int) -> Life:
        """Live so many steps, then let all be told and look whether it is right."""
        for _ in range(steps):
            answer: Answer = yield Wait()
            self._hear(answer.before)
            self.bank.advance(self._clock())
            luck = self.chance.random()
            if luck < 0.3 or not self.bank.payments:
                getattr(self.bank, self.chance.choice(AT_BANK))()
                self._collect()
            if luck < 0.55 and self._pool:
                yield from self._send(self.chance.sample(self._pool, min(len(self._pool), 3)))
            else:
                yield from self._act(self.chance.choice(HERE))
            yield from self._compare()
        self.bank.advance(self._clock())
        self._collect()
        yield from self._all_is_told()
        yield from self._sweep("end")
        yield from self._compare()
        plan, _ = self._look()
        if plan != self.bank.right_plan:
            raise Wrong(f"5 the plan is {plan}, {self.bank.right_plan} is paid for")

    def misplaced(self, came: Counter[str]) -> Iterator[str]:
        """Name what the accounts have that the model put elsewhere, at the end of a life."""
        went = self.reference_credits.went
        for name, found in (
            ("used", came["usage"]),
            ("written off", -came["writeoff"]),
            ("expired", came["expired"]),
            ("taken back", came["refunded"] + came["clawback"]),
            ("granted", -came["cash"] - came["promo"]),
        ):
            if went[name] != found:
                yield f"6 {name} is {found}, expected {went[name]}"

    def _all_is_told(self) -> Life:
        """Send everything, until each event was taken."""
        for _ in range(200):
            missing = [one for one in self._pool if one.id not in self._told]
            if not missing:
                return
            answer = yield Wait()
            self._hear(answer.before)
            self.chance.shuffle(missing)
            yield from self._send(missing[:6])
        raise Wrong(f"10 never applied: {[one.type for one in missing]}")

    def _collect(self) -> None:
        self._pool += self.bank.outbox
        self.bank.outbox.clear()

    def _send(self, events: Sequence[Happened]) -> Life:
        """Send events, which may come again as long as they are in the pool."""
        self.seen["sent"] += len(events)
        answer = yield Send(tuple((one, self.chance.random() < 0.4) for one in events))
        self._hear(answer.before)
        self._hear(answer.after)
        self._pool = [
            one for one in self._pool if one.id not in self._told or self.chance.random() < 0.5
        ]

    def _hear(self, applied: Sequence[Applied]) -> None:
        for one in applied:
            event = self.bank.known[one.event_id]
            if one.state == "failed":
                raise Wrong(f"5 {event.type} failed: {one.why}")
            if one.event_id in self._told:
                raise Wrong(f"4 {event.type} was applied twice")
            self._told.add(one.event_id)
            self.seen[f"event {event.type}"] += 1
            self.reference_credits.hear(event.proof, one.at)

        _, known = self._look()
        if applied and known and known.status == "canceled":
            # The bank says so too when it is asked about an older event, which the model never is.
            self.reference_credits.hear(Ended(known.subscription_id or ""), applied[-1].at)

    def _act(self, act: str) -> Life:
        self._number += 1
        act_of: Life = getattr(self, f"_{act}")(f"{self.bank.organization}:{self._number}")
        yield from act_of

    def _ask(
        self,
        message: Any,
        model: Callable[[], Any],
        compare: Callable[[Any, Any], bool] | None = None,
    ) -> Life:
        """Ask, let the model do the same, and compare what was answered."""
        answer: Answer = yield Ask(message)
        name = type(message).__name__
        self._hear(answer.before)
        self._plan = answer.plan
        before, self.reference_credits = self.reference_credits, self.reference_credits.copied()
        try:
            expected, told = model(), "reply"
        except Refused:
            expected, told, self.reference_credits = None, "refused", before  # all of it or nothing
        if answer.told != told and not (answer.told == "lost" and told == "reply"):
            raise Wrong(f"3 {name} was answered {answer.told} {answer.reply}, expected {told}")
        if answer.told == "reply" and compare and not compare(answer.reply, expected):
            raise Wrong(f"6 {name} was answered {answer.reply}, expected {expected}")
        self.seen[f"{name} {answer.told}"] += 1
        if answer.told != "refused" and answer.reply is not False and expected is not False:
            self._done += [] if isinstance(message, ExtendHold | ExpireCredits) else [message]
        self._hear(answer.after)

    def _compare(self) -> Life:
        """Look at the credits."""
        answer: Answer = yield Ask(ReadCredits(self._clock()))
        self._hear(answer.before)
        expected = self.reference_credits.seen(self._clock())
        view = answer.reply
        grants: Counter[tuple[str, str | None]] = Counter()
        for one in view.grants:
            grants[one.kind, one.reference] += one.remaining
        standing = (view.standing.available, view.standing.held)
        if standing != (expected.available, expected.held) or +grants != expected.grants():
            raise Wrong(
                f"5 the credits are {standing} {dict(+grants)},"
                f" expected {(expected.available, expected.held)} {dict(expected.grants())}"
            )
        self._hear(answer.after)

    # What is asked.

    def _amount(self) -> int:
        most = max(1, self.reference_credits.available)
        some = self.chance.randint(1, 1 + most // 4)
        return self.chance.choice((some, some, some, most // 2 + 1, most, most + 7, 123_457))

    def _some_hold(self) -> str:
        """Name a hold, mostly one that lives."""
        live = [*self.reference_credits.holds]
        return self.chance.choice(live if live and self.chance.random() < 0.9 else self._holds)

    def _spend(self, key: str) -> Life:
        amount, at = self._amount(), self._clock()
        yield from self._ask(
            SpendCredits(key=f"spend:{key}", amount=amount, reason="chat", at=at),
            lambda: self.reference_credits.spend(amount, self._clock(), self._plan),
        )

    def _hold(self, key: str) -> Life:
        amount, at = self._amount(), self._clock()
        until = at + hours(self.chance.choice((0.01, 1, 30, 2_000)))
        self._holds.append(key)
        yield from self._ask(
            HoldCredits(hold_id=key, amount=amount, at=at, lease_until=until),
            lambda: self.reference_credits.hold(key, amount, at, until, self._plan),
        )

    def _extend(self, _: str) -> Life:
        if not self._holds:
            return
        hold, at = self._some_hold(), self._clock()
        amount = self.chance.choice((0, self._amount()))
        used, until = self.chance.randrange(3_000_000), at + hours(self.chance.choice((0.01, 5)))
        yield from self._ask(
            ExtendHold(hold_id=hold, amount=amount, at=at, lease_until=until, used=used),
            lambda: self.reference_credits.extend(hold, amount, used, at, until, plan=self._plan),
        )

    def _settle(self, _: str) -> Life:
        if not self._holds:
            return
        hold, at = self._some_hold(), self._clock()
        known = self.reference_credits.holds.get(hold)
        held = known.amount if known else 1
        cost = self.chance.choice((held, held // 3, held + 500_000, self.chance.randint(0, held)))
        yield from self._ask(
            SettleHold(hold, cost, at),
            lambda: self.reference_credits.settle(hold, cost, at),
            lambda reply, expected: (reply.charged, reply.written_off) == expected,
        )

    def _release(self, _: str) -> Life:
        if self._holds:
            hold, at = self._some_hold(), self._clock()
            yield from self._ask(
                ReleaseHold(hold, at), lambda: self.reference_credits.settle(hold, 0, at)
            )

    def _adjust(self, key: str) -> Life:
        amount, at = self.chance.choice((5_000_000, -2_000_000, -self._amount())), self._clock()
        yield from self._ask(
            AdjustCredits(
                key=f"adjust:{key}", amount=amount, reason="sorry", user_id="usr_1", at=at
            ),
            lambda: self.reference_credits.adjust(f"adjust:{key}", amount, at),
        )

    def _bonus(self, _: str) -> Life:
        at = self._clock()
        day = self.chance.choice((at.date(), at.date(), (at - hours(24)).date()))
        yield from self._ask(
            GrantDailyBonus(day, at),
            lambda: self.reference_credits.bonus(day, at, self._plan),
            lambda reply, expected: reply == expected,
        )

    def _month(self, _: str) -> Life:
        """Let the job begin a month of a paid year, as it does for those that are due."""
        _, known = self._look()
        at = self._clock()
        if known is None or known.paid_cadence != "yearly":
            return
        assert known.paid_from is not None
        assert known.paid_until is not None
        paid = PaidPeriod(
            subscription_id=known.subscription_id or "",
            plan=known.paid_plan or "",
            starts_at=known.paid_from,
            ends_at=known.paid_until,
            payment_ref=known.paid_invoice_id,
        )
        yield from self._ask(
            StartMonth(at, paid),
            lambda: self._month_paid(known, at),
            lambda reply, expected: reply == expected,
        )

    def _month_paid(self, known: SubscriptionRecord, at: datetime) -> bool:
        starts, ends = known.paid_from, known.paid_until
        assert starts is not None
        assert ends is not None
        if self._plan != known.paid_plan or not starts <= at < ends:
            return False
        month = self.bank.month(starts, ends, at)
        allowance = self.bank.allowance(self._plan)
        invoice, subscription = known.paid_invoice_id or "", known.subscription_id or ""
        return self.reference_credits.period(
            PeriodPaid(invoice, *month, allowance, 0, subscription), at
        )

    def _sweep(self, _: str) -> Life:
        at = self._clock()
        yield from self._ask(ExpireCredits(at), lambda: self.reference_credits.tick(at))

    def _again(self, _: str) -> Life:
        """Ask again what was done before: nothing happens."""
        if not self._done:
            return
        message = self.chance.choice(self._done[-20:])
        answer: Answer = yield Ask(message)
        self._hear(answer.before)
        self.seen["again"] += 1
        self._hear(answer.after)
