from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.actors.organization.books import (
    AT,
    DOLLAR,
    Ledger,
    days,
    purchase,
    seen,
)
from tolsey.actors import chain
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    Dispute,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    HoldCredits,
    ReadCredits,
    ReleaseHold,
    ResetAllowance,
    Settled,
    SettleHold,
    SpendCredits,
    Standing,
)
from tolsey.actors.refusals import Conflict, PaymentRequired, Unprocessable
from tolsey.runtime.errors import Duplicate

LATER = AT + days(0.01)
END = AT + days(31)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def remaining(ledger: Ledger) -> dict[str, int]:
    return {id: lot.remaining // DOLLAR for id, lot in ledger.state.credits.lots.items()}


def allowance(key: str, dollars: int, end: datetime = END, at: datetime = AT) -> ResetAllowance:
    return ResetAllowance(
        key=key,
        plan="pro",
        period_start=end - days(31),
        period_end=end,
        allowance=dollars * DOLLAR,
        at=at,
    )


def test_a_purchase_is_granted_for_twelve_months_and_told_to_auditors(ledger: Ledger) -> None:
    assert ledger.take(purchase("pi_1", 50)) == Standing(
        seq=1, balance=50 * DOLLAR, available=50 * DOLLAR, held=0
    )
    view = ledger.take(ReadCredits(AT))
    assert view.next_expiry == datetime(2027, 7, 1, 12, tzinfo=UTC)
    assert [(grant.id, grant.remaining) for grant in view.grants] == [
        ("purchase:pi_1", 50 * DOLLAR)
    ]
    assert ledger.accounts == {"lot:purchase:pi_1": 50 * DOLLAR, "cash": -50 * DOLLAR}
    assert ledger.events() == ["purchase.completed"]


def test_a_leap_day_s_credits_expire_on_the_last_of_february() -> None:
    leap = datetime(2028, 2, 29, tzinfo=UTC)
    assert twelve_months_after(leap) == datetime(2029, 2, 28, tzinfo=UTC)


def test_the_same_purchase_twice_is_one(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    with pytest.raises(Duplicate):
        ledger.take(purchase("pi_1", 50))
    assert ledger.state.credits.available == 50 * DOLLAR


def test_what_expires_first_is_spent_first_then_what_is_oldest(ledger: Ledger) -> None:
    for key, granted, expires in (("c", 2, 90), ("b", 1, 90), ("a", 3, 30)):
        at = AT + days(granted / 24)
        ledger.take(
            GrantCredits(
                key=key, kind="bonus", amount=10 * DOLLAR, at=at, expires_at=AT + days(expires)
            )
        )
    ledger.take(SpendCredits(key="s", amount=15 * DOLLAR, reason="chat", at=AT + days(1)))
    assert remaining(ledger) == {"b": 5, "c": 10}
    assert ledger.accounts["usage"] == 15 * DOLLAR
    ledger.check()


def test_what_is_not_available_is_refused_whole(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 5))
    with pytest.raises(PaymentRequired) as refused:
        ledger.take(SpendCredits(key="s", amount=5 * DOLLAR + 1, reason="chat", at=AT))
    assert refused.value.code == "insufficient_credits"
    assert refused.value.fields == {"required": 5 * DOLLAR + 1, "available": 5 * DOLLAR}
    ledger.take(SpendCredits(key="s", amount=5 * DOLLAR, reason="chat", at=AT))
    assert ledger.state.credits.lots == {}
    assert ledger.lots["purchase:pi_1"].remaining == 0


@pytest.mark.parametrize("amount", [0, -1])
def test_nothing_is_moved_backwards(ledger: Ledger, amount: int) -> None:
    for message in (
        SpendCredits(key="s", amount=amount, reason="chat", at=AT),
        HoldCredits(hold_id="h", amount=amount, at=AT, lease_until=LATER),
        replace(purchase("pi_1", 1), amount=amount),
    ):
        with pytest.raises(Unprocessable):
            ledger.take(message)


def test_a_hold_pins_is_paid_and_gives_the_rest_back(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    held = ledger.take(HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    assert held == Standing(seq=2, balance=10 * DOLLAR, available=4 * DOLLAR, held=6 * DOLLAR)
    with pytest.raises(PaymentRequired):
        ledger.take(SpendCredits(key="s", amount=5 * DOLLAR, reason="chat", at=AT))
    settled = ledger.take(SettleHold("h", 2 * DOLLAR, AT))
    assert settled == Settled(
        2 * DOLLAR, 0, Standing(seq=3, balance=8 * DOLLAR, available=8 * DOLLAR, held=0)
    )
    ledger.check()


def test_a_hold_is_settled_once(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    hold = HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=LATER)
    first = ledger.take(hold)
    assert ledger.take(hold) == first
    ledger.take(SettleHold("h", 2 * DOLLAR, AT))
    for late in (SettleHold("h", 2 * DOLLAR, AT), ReleaseHold("h", AT)):
        with pytest.raises(Conflict) as refused:
            ledger.take(late)
        assert refused.value.code == "hold_closed"
    with pytest.raises(Duplicate):
        ledger.take(hold)
    assert ledger.accounts["usage"] == 2 * DOLLAR


def test_cost_above_a_hold_is_written_off_and_never_taken_from_elsewhere(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    ledger.take(HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    settled = ledger.take(SettleHold("h", 7 * DOLLAR, AT))
    assert (settled.charged, settled.written_off) == (6 * DOLLAR, 1 * DOLLAR)
    assert ledger.state.credits.available == 4 * DOLLAR
    assert ledger.accounts["writeoff"] == -DOLLAR
    assert ledger.accounts["usage"] == 7 * DOLLAR
    ledger.check()


def test_a_hold_is_extended_from_fresh_credit_and_refused_past_it(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 1))
    ledger.take(HoldCredits(hold_id="h", amount=DOLLAR, at=AT, lease_until=LATER))
    more = ExtendHold(hold_id="h", amount=DOLLAR, at=AT, lease_until=LATER)
    with pytest.raises(PaymentRequired):
        ledger.take(more)
    ledger.take(purchase("pi_2", 5))
    assert ledger.take(more).held == 2 * DOLLAR
    ledger.take(SettleHold("h", 2 * DOLLAR, AT))
    assert remaining(ledger) == {"purchase:pi_2": 4}
    ledger.check()


def test_a_hold_left_alone_ends_at_the_cost_it_last_reported(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    ledger.take(HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    ledger.take(
        ExtendHold(hold_id="h", amount=0, at=AT, lease_until=LATER + days(1), used=2 * DOLLAR)
    )
    assert ledger.state.credits.seq == 2
    ledger.crash()
    assert ledger.take(ReadCredits(LATER)).standing.held == 6 * DOLLAR
    assert ledger.take(ReadCredits(LATER + days(1))).standing.available == 8 * DOLLAR
    spent = ledger.take(SpendCredits(key="s", amount=8 * DOLLAR, reason="chat", at=LATER + days(1)))
    assert spent.balance == 0
    assert ledger.accounts["usage"] == 10 * DOLLAR
    ledger.check()


def test_a_hold_left_alone_is_free_for_the_next(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    ledger.take(HoldCredits(hold_id="h1", amount=10 * DOLLAR, at=AT, lease_until=LATER))
    assert (
        ledger.take(
            HoldCredits(hold_id="h2", amount=10 * DOLLAR, at=LATER, lease_until=AT + days(1))
        ).held
        == 10 * DOLLAR
    )
    assert list(ledger.state.credits.holds) == ["h2"]
    ledger.check()


def test_a_hold_that_is_heard_of_late_is_settled_at_its_cost(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    ledger.take(HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    assert ledger.take(SettleHold("h", 5 * DOLLAR, LATER + days(1))).charged == 5 * DOLLAR


def test_expiry_leaves_what_is_pinned_until_it_is_free_again(ledger: Ledger) -> None:
    ledger.take(
        GrantCredits(key="b", kind="bonus", amount=10 * DOLLAR, at=AT, expires_at=AT + days(1))
    )
    ledger.take(HoldCredits(hold_id="h", amount=6 * DOLLAR, at=AT, lease_until=AT + days(9)))
    swept = ledger.take(ExpireCredits(AT + days(2)))
    assert (swept.available, swept.held) == (0, 6 * DOLLAR)
    seq = swept.seq
    assert ledger.take(ExpireCredits(AT + days(2))).seq == seq
    settled = ledger.take(SettleHold("h", 2 * DOLLAR, AT + days(3)))
    assert (settled.charged, settled.standing.balance) == (2 * DOLLAR, 0)
    assert ledger.accounts["expired"] == 8 * DOLLAR
    ledger.check()


def test_expired_credits_are_not_spent_though_no_sweep_has_been(ledger: Ledger) -> None:
    ledger.take(
        GrantCredits(key="b", kind="bonus", amount=10 * DOLLAR, at=AT, expires_at=AT + days(1))
    )
    assert ledger.take(ReadCredits(AT + days(1))).standing.balance == 0
    with pytest.raises(PaymentRequired):
        ledger.take(SpendCredits(key="s", amount=1, reason="chat", at=AT + days(1)))


def test_the_first_pro_month_leaves_49_dollars_and_max_tops_up_to_149(ledger: Ledger) -> None:
    assert ledger.take(allowance("a", 49)).available == 49 * DOLLAR
    assert ledger.take(allowance("b", 149)).available == 149 * DOLLAR
    assert ledger.take(allowance("c", 49)).available == 149 * DOLLAR
    assert ledger.take(allowance("d", 149)).available == 149 * DOLLAR
    assert len(ledger.resets) == 1
    ledger.check()


def test_a_new_month_expires_the_old_allowance_and_keeps_what_was_bought(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 5))
    ledger.take(allowance("a", 49))
    ledger.take(SpendCredits(key="s", amount=9 * DOLLAR, reason="chat", at=LATER))
    ledger.take(allowance("b", 49, END + days(31), END))
    assert remaining(ledger) == {"b": 49, "purchase:pi_1": 5}
    assert ledger.accounts["expired"] == 40 * DOLLAR
    late = ledger.take(allowance("late", 49, END, END))
    assert late.available == 54 * DOLLAR
    assert ledger.events().count("monthly.reset") == 2
    ledger.check()


def test_a_reset_lets_a_running_hold_finish(ledger: Ledger) -> None:
    ledger.take(allowance("a", 49))
    ledger.take(HoldCredits(hold_id="h", amount=10 * DOLLAR, at=AT, lease_until=END + days(1)))
    assert ledger.take(allowance("b", 49, END + days(31), END)).balance == 59 * DOLLAR
    settled = ledger.take(SettleHold("h", 4 * DOLLAR, END))
    assert settled.standing.balance == 49 * DOLLAR
    ledger.check()


def test_refunds_are_cumulative_and_rounded_once(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    for refunded in (2_000, 3_000, 2_000):
        ledger.take(seen("pi_1", 6_000, refunded))
    assert ledger.state.credits.available == 25 * DOLLAR
    assert ledger.accounts["refunded"] == 25 * DOLLAR
    ledger.check()


def test_a_refund_and_a_dispute_of_one_payment_take_it_back_once(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "open")))
    ledger.take(seen("pi_1", 5_000, 5_000))
    assert ledger.state.credits.available == 0
    ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "won")))
    assert ledger.state.credits.available == 0
    assert ledger.accounts["refunded"] == 50 * DOLLAR
    assert "clawback" not in ledger.accounts
    ledger.check()


def test_a_dispute_takes_back_what_was_spent_and_later_grants_pay_first(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(SpendCredits(key="s", amount=20 * DOLLAR, reason="chat", at=AT))
    clawed = ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "open")))
    assert clawed.available == -20 * DOLLAR
    assert ledger.events()[1:] == ["chargeback.received", "clawback.applied"]
    with pytest.raises(PaymentRequired):
        ledger.take(SpendCredits(key="t", amount=1, reason="chat", at=AT))
    assert ledger.take(purchase("pi_2", 30)).available == 10 * DOLLAR
    ledger.check()
    won = ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "won")))
    assert won.available == 60 * DOLLAR
    ledger.check()


def test_a_debt_is_paid_from_other_credits_at_once(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(SpendCredits(key="s", amount=50 * DOLLAR, reason="chat", at=AT))
    ledger.take(purchase("pi_2", 60))
    ledger.take(seen("pi_1", 5_000, 5_000))
    assert (ledger.state.credits.debt, remaining(ledger)) == (0, {"purchase:pi_2": 10})
    ledger.check()


@pytest.mark.parametrize("status", ["won", "lost"])
def test_the_end_of_a_dispute_may_be_heard_of_before_its_beginning(
    ledger: Ledger, status: str
) -> None:
    ledger.take(purchase("pi_1", 50))
    ended = Dispute("dp_1", 5_000, "won" if status == "won" else "lost")
    ledger.take(seen("pi_1", 5_000, 0, ended))
    ledger.take(seen("pi_1", 5_000, 0, replace(ended, status="open")))
    assert ledger.state.credits.available == (50 * DOLLAR if status == "won" else 0)
    ledger.check()


def test_what_is_known_before_the_grant_waits_for_it(ledger: Ledger) -> None:
    early = ledger.take(seen("pi_1", 5_000, 2_500))
    assert early == Standing(seq=0, balance=0, available=0, held=0)
    ledger.crash()
    assert ledger.take(purchase("pi_1", 50)).available == 25 * DOLLAR
    ledger.check()


def test_a_payment_of_long_ago_is_remembered(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(SpendCredits(key="s", amount=50 * DOLLAR, reason="chat", at=AT))
    ledger.crash()
    assert not ledger.state.credits.payments
    assert ledger.take(seen("pi_1", 5_000, 5_000)).available == -50 * DOLLAR
    ledger.check()


def test_a_subscription_s_refund_takes_its_allowance_back(ledger: Ledger) -> None:
    ledger.take(replace(allowance("a", 49), reference="pi_sub"))
    assert ledger.take(seen("pi_sub", 7_900, 7_900)).available == 0


def test_a_lost_dispute_may_be_reopened_and_won(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    lost = ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "lost")))
    won = ledger.take(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "won")))
    assert (lost.available, won.available) == (0, 50 * DOLLAR)
    ledger.check()


def test_a_share_of_a_refund_is_rounded_up(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(seen("pi_1", 3, 1))
    assert ledger.accounts["refunded"] == 16_666_667


def test_an_operator_gives_and_takes_but_never_below_zero(ledger: Ledger) -> None:
    given = AdjustCredits(
        key="adj_1", amount=5 * DOLLAR, reason="sorry", user_id="usr_admin", at=AT
    )
    assert ledger.take(given).available == 5 * DOLLAR
    with pytest.raises(PaymentRequired):
        ledger.take(replace(given, key="adj_2", amount=-6 * DOLLAR))
    ledger.take(replace(given, key="adj_3", amount=-5 * DOLLAR))
    assert ledger.accounts == {}
    (first, _) = ledger.audit
    assert (first.event, first.actor) == ("manual.adjustment", "usr_admin")
    assert '"reason": "sorry"' in first.metadata


def test_an_entry_is_hashed_as_everyone_can_hash_it() -> None:
    at = datetime(2026, 3, 1, 1, 59, 59, 1, timezone(timedelta(hours=2)))
    row = ("org_1", 1, "spend:ünï", "spend", None, at)
    # printf '%s' '000...0["org_1",1,"spend:ünï","spend",null,"2026-02-28T23:59:59.000001+00:00",
    # [["usage","lot:a",250]]]' | sha256sum, in one line
    found = "12c855978560ad1f30fa3c391e0f3dc0e0aa211e0ead5e99404f4398a3a16f08"
    assert chain.sealed(chain.GENESIS, row, [("usage", "lot:a", 250)]) == found


def test_a_changed_a_missing_and_a_cut_off_row_break_the_chain(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 50))
    ledger.take(SpendCredits(key="s", amount=DOLLAR, reason="chat", at=AT))
    ledger.take(SpendCredits(key="t", amount=DOLLAR, reason="chat", at=AT))
    (one, two, three), last = ledger.pairs, ledger.state.credits.hash
    assert chain.broken_at([one, two, three], last) is None
    assert chain.broken_at([one, three], last) == 2
    assert chain.broken_at([one, two], last) == 3
    entry, postings = two
    assert chain.broken_at([one, (replace(entry, reference="gift"), postings), three]) == 2
    richer = [replace(postings[0], amount=1)]
    assert chain.broken_at([one, (entry, richer), three]) == 2
    assert chain.broken_at([one, (entry, []), three]) == 2


def test_a_spending_of_many_holds_and_lots_touches_only_its_own(ledger: Ledger) -> None:
    for number in range(50):
        ledger.take(purchase(f"pi_{number:02}", 1, AT + days(number)))
    before = ledger.state.credits.lots
    ledger.take(SpendCredits(key="s", amount=DOLLAR // 2, reason="chat", at=AT + days(60)))
    after = ledger.state.credits.lots
    assert [id for id, lot in after.items() if before[id] is not lot] == ["purchase:pi_00"]
    assert len(ledger.pairs[-1][1]) == 1
