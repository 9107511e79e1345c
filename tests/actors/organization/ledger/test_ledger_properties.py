"""Whatever happens to an organization's credits, the books are right after every step."""

from collections import Counter
from contextlib import suppress
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, purchase, seen
from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    Dispute,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    GrantDailyBonus,
    HoldCredits,
    ReleaseHold,
    ResetAllowance,
    SettleHold,
    SpendCredits,
)
from tolsey.actors.refusals import Refusal
from tolsey.runtime.errors import Duplicate

refs = st.sampled_from(["pi_1", "pi_2", "pi_3"])
holds = st.sampled_from(["h1", "h2", "h3", "h4"])
amounts = st.integers(1, 60 * DOLLAR)
costs = st.integers(0, 60 * DOLLAR)
statuses = st.sampled_from(["open", "lost", "won"])
disputes = st.builds(Dispute, st.sampled_from(["dp_1", "dp_2"]), st.integers(1, 6_000), statuses)


class Life(RuleBasedStateMachine):
    """An organization: grants, use, holds, refunds, disputes, time, repeats and crashes."""

    @initialize(plan=st.sampled_from(["free", "pro", "max_20x"]))
    def open(self, plan: str) -> None:
        self.ledger = Ledger(plan)
        self.now = AT
        self.month = 0
        self.used = 0
        self.messages: list[object] = []

    def take(self, message: object) -> object:
        self.messages.append(message)
        before = self.ledger.state
        try:
            return self.ledger.take(message)
        except (Refusal, Duplicate):
            assert self.ledger.state is before
            return None

    @rule(days_later=st.sampled_from([0.0, 0.01, 1.0, 20.0, 200.0]))
    def time_passes(self, days_later: float) -> None:
        self.now += days(days_later)

    @rule(ref=refs, dollars=st.integers(1, 60))
    def someone_buys(self, ref: str, dollars: int) -> None:
        self.take(purchase(ref, dollars, self.now))

    @rule(day=st.integers(0, 5), amount=amounts, life=st.sampled_from([1, 30, 365]))
    def a_bonus_is_given(self, day: int, amount: int, life: int) -> None:
        ends = self.now + days(life)
        self.take(
            GrantCredits(
                key=f"bonus:{day}", kind="bonus", amount=amount, at=self.now, expires_at=ends
            )
        )

    @rule(days_ago=st.integers(0, 2))
    def the_daily_job_runs(self, days_ago: int) -> None:
        self.take(GrantDailyBonus((self.now - days(days_ago)).date(), self.now))

    @rule(later=st.integers(-1, 1), dollars=st.sampled_from([0, 49, 149]), ref=refs)
    def a_period_is_paid(self, later: int, dollars: int, ref: str) -> None:
        self.month = max(self.month, self.month + later)
        end = AT + days(30 * (self.month + min(later, 0) + 1))
        key = f"allowance:{end.isoformat()}:{dollars}"
        self.take(
            ResetAllowance(
                key=key,
                plan="pro",
                period_start=end - days(30),
                period_end=end,
                allowance=dollars * DOLLAR,
                at=self.now,
                reference=f"sub_{ref}",
            )
        )

    @rule(amount=amounts, number=st.integers(0, 9))
    def something_is_used(self, amount: int, number: int) -> None:
        if self.take(
            SpendCredits(key=f"spend:{number}", amount=amount, reason="chat", at=self.now)
        ):
            self.used += amount

    @rule(hold=holds, amount=amounts, lease=st.sampled_from([0.005, 1.0, 500.0]))
    def credits_are_held(self, hold: str, amount: int, lease: float) -> None:
        self.take(
            HoldCredits(
                hold_id=hold, amount=amount, at=self.now, lease_until=self.now + days(lease)
            )
        )

    @rule(hold=holds, amount=costs, used=costs)
    def a_hold_is_extended(self, hold: str, amount: int, used: int) -> None:
        self.take(
            ExtendHold(
                hold_id=hold, amount=amount, at=self.now, lease_until=self.now + days(1), used=used
            )
        )

    @rule(hold=holds, cost=costs)
    def a_hold_is_settled(self, hold: str, cost: int) -> None:
        self.take(SettleHold(hold, cost, self.now))

    @rule(hold=holds)
    def a_hold_is_released(self, hold: str) -> None:
        self.take(ReleaseHold(hold, self.now))

    @rule(
        ref=st.one_of(refs, refs.map("sub_{}".format)),
        total=st.sampled_from([0, 5_000, 6_000]),
        refunded=st.integers(0, 6_000),
        known=st.lists(disputes, max_size=2),
    )
    def the_processor_tells(
        self, ref: str, total: int, refunded: int, known: list[Dispute]
    ) -> None:
        self.take(seen(ref, total, refunded, *known, at=self.now))

    @rule(amount=st.integers(-60 * DOLLAR, 60 * DOLLAR), number=st.integers(0, 3))
    def an_operator_adjusts(self, amount: int, number: int) -> None:
        self.take(
            AdjustCredits(
                key=f"adj:{number}", amount=amount, reason="why", user_id="usr_admin", at=self.now
            )
        )

    @rule()
    def the_sweep_runs_twice(self) -> None:
        self.take(ExpireCredits(self.now))
        seq = self.ledger.state.credits.seq
        self.take(ExpireCredits(self.now))
        assert self.ledger.state.credits.seq == seq
        for lot in self.ledger.state.credits.lots.values():
            assert lot.expires_at > self.now or not lot.free

    @rule(number=st.integers(0, 10))
    def an_old_message_comes_again(self, number: int) -> None:
        if not self.messages:
            return
        message = self.messages[number % len(self.messages)]
        with suppress(Refusal, Duplicate):
            self.ledger.take(message)
            if isinstance(message, SpendCredits):  # refused before, and covered now
                self.used += message.amount

    @rule()
    def the_process_dies(self) -> None:
        before = self.ledger.state.credits
        self.ledger.crash()
        after = self.ledger.state.credits
        assert after.standing == before.standing
        assert dict(after.lots) == dict(before.lots)
        assert dict(after.holds) == dict(before.holds)
        assert (after.period_end, after.allowance) == (before.period_end, before.allowance)
        assert after.bonus_day == before.bonus_day

    @invariant()
    def the_books_are_right(self) -> None:
        if not hasattr(self, "ledger"):
            return
        self.ledger.check()
        settled = sum(one.used for one in self.ledger.holds.values() if one.closed_at)
        assert self.ledger.accounts.get("usage", 0) == self.used + settled
        daily = plans.daily_bonus(self.ledger.state.plan, None)
        assert sum(one.amount for one in self.ledger.bonuses) == daily * len(self.ledger.bonuses)


Life.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLife = Life.TestCase


def observed(at: datetime) -> st.SearchStrategy[list[object]]:
    grants = st.sets(refs, min_size=1).map(lambda some: [purchase(ref, 50, at) for ref in some])
    facts = st.lists(
        st.builds(
            lambda ref, refunded, known: seen(ref, 6_000, refunded, *known, at=at),
            refs,
            st.sampled_from([0, 0, 1_000, 3_333, 6_000]),
            st.lists(disputes, max_size=2),
        ),
        max_size=8,
    )
    return st.builds(lambda bought, answered: [*bought, *answered], grants, facts)


@settings(max_examples=150)
@given(observed(AT), st.randoms(use_true_random=False))
def test_any_order_and_repetition_of_what_the_processor_says_comes_to_the_same(
    story: list[object], random: object
) -> None:
    told_otherwise = [*story, *story[::2]]
    random.shuffle(told_otherwise)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    one, other = Ledger(), Ledger()
    for message in story:
        one.take(message)
    for message in told_otherwise:
        with suppress(Duplicate):
            other.take(message)
            other.check()
    assert one.state.credits.standing.balance == other.state.credits.standing.balance
    assert by_kind(one) == by_kind(other)
    for account in ("refunded", "clawback", "cash", "debt"):
        assert one.accounts.get(account) == other.accounts.get(account)


def by_kind(ledger: Ledger) -> Counter[str | None]:
    """Sum what is left by the payment it was bought with."""
    left: Counter[str | None] = Counter()
    for lot in ledger.state.credits.lots.values():
        left[lot.reference] += lot.remaining
    return left
