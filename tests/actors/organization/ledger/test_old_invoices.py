"""Reversing an old invoice never takes what a newer one brought (rules/credits#reversals)."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, purchase, seen
from tolsey.actors.organization.ledger import parts
from tolsey.actors.organization.ledger.messages import (
    Dispute,
    HoldCredits,
    PaymentObserved,
    ResetAllowance,
    SpendCredits,
)
from tolsey.storage.records.money.credits import CreditedPayment

END = AT + days(30)


def month(
    invoice: str,
    dollars: int = 49,
    ends_at: datetime = END,
    starts_at: datetime = AT,
    at: datetime | None = None,
) -> ResetAllowance:
    return ResetAllowance(
        key=f"allowance:{invoice}",
        plan="pro",
        period_start=starts_at,
        period_end=ends_at,
        allowance=dollars * DOLLAR,
        at=at or starts_at,
        reference=invoice,
        renewed_by="sub_1",
    )


def renewal(at: datetime = END) -> ResetAllowance:
    return month("in_2", ends_at=END + days(31), starts_at=END, at=at)


def spent(dollars: float) -> SpendCredits:
    return SpendCredits(key="spend", amount=int(dollars * DOLLAR), reason="chat", at=AT)


def dispute(status: Any, cents: int = 7_900, at: datetime = END) -> Any:
    return seen("in_1", 7_900, 0, Dispute("dp_1", cents, status), at=at)


def told(*messages: Any) -> Ledger:
    ledger = Ledger()
    for message in messages:
        ledger.crash()
        ledger.take(message)
        ledger.check()
    return ledger


def test_a_month_that_nobody_used_and_that_is_over_is_nobodys_debt() -> None:
    ledger = told(month("in_1"), renewal(), seen("in_1", 7_900, 7_900, at=END))
    assert ledger.state.credits.available == 49 * DOLLAR
    assert (ledger.accounts["refunded"], ledger.accounts.get("expired", 0)) == (49 * DOLLAR, 0)


def test_what_expired_takes_up_a_refund_first_and_only_what_was_spent_is_owed() -> None:
    for order in permutations((renewal(), seen("in_1", 7_900, 3_950, at=END))):
        ledger = told(month("in_1"), spent(30), *order)
        assert ledger.state.credits.available == int(43.5 * DOLLAR)
        assert ledger.events().count("clawback.applied") == 1


def test_a_dispute_won_after_its_month_gives_back_no_more_than_it_took_of_others() -> None:
    first, last = dispute("open", 3_950), dispute("won", 3_950)
    for order in permutations((renewal(), first, last)):
        ledger = told(month("in_1"), spent(30), *order)
        assert ledger.state.credits.available == 49 * DOLLAR
        assert "clawback" not in {name for name, value in ledger.accounts.items() if value}


@pytest.mark.parametrize("bought", [0, 100])
def test_credits_that_paid_for_a_disputed_month_come_back_for_twelve_months(bought: int) -> None:
    """The month's own share does not: it would have expired with it."""
    others = (purchase("pi_1", bought),) if bought else ()
    ledger = told(month("in_1"), spent(30), *others, dispute("open", at=AT), dispute("won", at=AT))
    assert ledger.state.credits.available == (19 + bought) * DOLLAR
    ledger.take(renewal())
    assert ledger.state.credits.available == (49 + bought) * DOLLAR
    ledger.check()


def test_each_month_of_a_year_that_was_paid_at_once_loses_its_own_share() -> None:
    """Half of the year goes back: half of each month, whether the month before was over or not."""
    second = ResetAllowance(
        key="allowance:month:2",
        plan="pro",
        period_start=END,
        period_end=END + days(31),
        allowance=49 * DOLLAR,
        at=END,
        reference="in_1",
        renewed_by="sub_1",
    )
    half = seen("in_1", 7_900, 3_950, at=END)
    for order in permutations((half, second)):
        ledger = told(month("in_1"), *order)
        assert ledger.state.credits.available == int(24.5 * DOLLAR)


def test_who_paid_for_which_part_of_a_period_is_the_same_in_any_order() -> None:
    """A plan of 49, raised to 149 and to 299 within its period: each step has its own payment."""
    steps = (
        month("in_1", 49),
        month("in_2", 149, starts_at=AT + days(1)),
        month("in_3", 299, starts_at=AT + days(2)),
    )
    for refunded, left in (("in_1", 250), ("in_2", 199), ("in_3", 149)):
        for order in permutations((*steps, seen(refunded, 7_900, 7_900))):
            assert told(*order).state.credits.available == left * DOLLAR


def test_a_month_told_more_than_a_year_ahead_ends_with_its_period_too() -> None:
    """Its reversals find it to be the month that stands, in whatever order they are told."""
    early = AT - days(400)
    half, all_ = seen("in_1", 7_900, 3_950, at=early), dispute("open", at=early)
    for order in permutations((half, all_, dispute("won", at=early))):
        ledger = told(month("in_1", at=early), *order)
        assert ledger.state.credits.available == int(24.5 * DOLLAR)
        assert [lot.expires_at for lot in ledger.state.credits.lots.values()] == [END]


def test_what_was_spent_or_expired_of_a_step_is_told_to_the_step_that_paid_for_it() -> None:
    late = END + timedelta(days=4)
    low, high = month("in_1", 49, at=late), month("in_2", 149, at=AT)
    gone = seen("in_1", 7_900, 7_900, at=late)
    for dollars, debt in ((149, 49), (30, 30), (0.000_001, 0.000_001)):
        ledger = told(high, spent(dollars), low, gone)
        assert ledger.state.credits.debt == int(debt * DOLLAR)
    assert told(high, spent(120), low, gone).state.credits.debt == 49 * DOLLAR
    ledger = told(high, spent(30), low)
    expired = {
        name: [part.expired // DOLLAR for part in parts.of_payment(one)]
        for name, one in ledger.payments.items()
    }
    assert expired == {"in_1": [19], "in_2": [100]}


def test_a_step_that_is_told_late_has_a_lot_of_its_own() -> None:
    high = month("in_2", 149)
    ledger = told(high)
    assert ledger.take(month("in_1", 49, at=AT + days(1))) == ledger.state.credits.standing
    assert {
        one.reference: (one.amount // DOLLAR, one.remaining // DOLLAR, one.granted_at, one.seq)
        for one in ledger.lots.values()
    } == {"in_1": (49, 49, AT + days(1), 2), "in_2": (100, 100, AT, 2)}
    written = [(one.key, one.kind, one.reference) for one in ledger.entries]
    assert written[-1] == ("allowance:in_1", "allowance", "in_1")
    assert ledger.take(high) == ledger.state.credits.standing


def test_a_period_began_when_the_last_of_its_payments_did() -> None:
    late = month("in_1", 49, starts_at=AT + days(2))
    ledger = told(late, month("in_2", 149, starts_at=AT))
    assert ledger.state.credits.period_start == AT + days(2)


def test_a_dispute_won_after_a_dearer_plan_began_gives_back_nothing_of_the_month() -> None:
    """Its month has not come to its end, and another is in its place."""
    first, last = dispute("open", at=AT + days(6)), dispute("won", at=AT + days(6))
    dearer = month("in_2", 149, ends_at=END + days(5), starts_at=AT + days(5))
    for order in permutations((dearer, first, last)):
        ledger = told(month("in_1"), *order, seen("in_1", 7_900, 0, at=AT + days(6)))
        assert ledger.state.credits.available == 149 * DOLLAR


def test_a_dispute_of_a_purchase_that_is_won_gives_it_back_beside_a_plan() -> None:
    opened = Dispute("dp_1", 1_000, "open")
    ledger = told(month("in_1"), purchase("pi_1", 10), seen("pi_1", 1_000, 0, opened))
    assert ledger.state.credits.available == 49 * DOLLAR
    ledger.take(seen("pi_1", 1_000, 0, replace(opened, status="won")))
    assert ledger.state.credits.available == 59 * DOLLAR


def test_a_refund_of_what_a_dispute_took_already_takes_nothing_more() -> None:
    opened = Dispute("dp_1", 1_000, "open")
    ledger = told(purchase("pi_1", 10), seen("pi_1", 1_000, 500, opened))
    ledger.take(seen("pi_1", 1_000, 1_000, opened))
    told_of = [one for one in ledger.events() if one.startswith("clawback")]
    assert told_of == ["clawback.applied"]
    assert ledger.accounts["refunded"] == 10 * DOLLAR
    ledger.check()


def test_what_expired_takes_up_each_reversal_once() -> None:
    """Of 49, 30 were spent and 19 expired: whatever is lost and won meanwhile, 30 are owed."""
    half, other = Dispute("dp_1", 3_950, "open"), Dispute("dp_2", 1_000, "open")
    ledger = told(month("in_1"), spent(30), renewal())
    for refunded, disputes, left in (
        (1_000, (), 49),
        (1_000, (half,), 37.297_468),
        (1_000, (replace(half, status="won"),), 49),
        (1_000, (replace(half, status="won"), other), 49),
        (1_000, (replace(other, status="won"),), 49),
        (7_900, (), 19),
    ):
        ledger.take(seen("in_1", 7_900, refunded, *disputes, at=END))
        assert ledger.state.credits.available == pytest.approx(left * DOLLAR, abs=2)
        ledger.check()
    assert [(one.owed, one.expired) for one in parts.of_payment(ledger.payments["in_1"])] == [
        (30 * DOLLAR, 0)
    ]


def test_a_refund_and_a_dispute_told_at_once_are_booked_under_their_own_names() -> None:
    ledger = told(purchase("pi_1", 10))
    ledger.take(seen("pi_1", 1_000, 500, Dispute("dp_1", 200, "open")))
    moved = [(one.debit, one.credit, one.amount // DOLLAR) for one in ledger.postings[1:]]
    assert moved == [
        ("refunded", "lot:purchase:pi_1", 7),
        ("clawback", "refunded", 2),
    ]
    ledger.check()


@pytest.mark.parametrize(("pinned", "own"), [(100, 49), (120, 29), (149, None)])
def test_a_step_that_is_told_late_leaves_what_is_pinned(pinned: int, own: int | None) -> None:
    held = HoldCredits(hold_id="h", amount=pinned * DOLLAR, at=AT, lease_until=AT + days(1))
    ledger = told(month("in_2", 149), held, month("in_1", 49))
    found = {one.reference: one.amount // DOLLAR for one in ledger.lots.values()}
    assert found.get("in_1") == own
    assert ("in_1" in ledger.payments) == (own is not None)


def test_a_second_payment_of_the_same_step_has_no_part_of_the_first() -> None:
    for first in (month("in_1", 49), month("in_0", 149, ends_at=AT, starts_at=AT - days(30))):
        ledger = Ledger()
        for message in (first, month("in_2", 49), month("in_3", 49)):
            ledger.take(message)
        assert "in_3" not in ledger.payments
        ledger.take(seen("in_3", 7_900, 7_900))
        assert ledger.state.credits.available == 49 * DOLLAR


@pytest.mark.parametrize("dollars", [40, 100, 149])
@pytest.mark.parametrize("cents", [4_000, 9_950, 19_900])
def test_what_was_taken_back_before_a_step_is_told_is_counted_once(
    dollars: int, cents: int
) -> None:
    low, high, used = month("in_1", 49), month("in_2", 149), spent(dollars)
    back = seen("in_2", 19_900, cents)
    in_order, late = told(low, high, used, back), told(high, used, back, low)
    assert _left(in_order) == _left(late)
    for ledger in (in_order, late):
        ledger.take(seen("in_1", 7_900, 7_900))
        ledger.check()
    assert in_order.state.credits.available == late.state.credits.available


def _left(ledger: Ledger) -> dict[str | None, int]:
    lots = ledger.state.credits.lots.values()
    return {one.reference: one.remaining for one in lots} | {"debt": ledger.state.credits.debt}


def test_a_payment_remembers_each_of_its_grants_apart() -> None:
    known = CreditedPayment(
        organization_id="org_1",
        payment_ref="in_1",
        kind="allowance",
        granted=70,
        granted_at=None,
        expires_at=None,
        credits=0,
        total=0,
        refunded=0,
        disputes="[]",
        refund_removed=0,
        dispute_removed=0,
    )
    both = [
        parts.GrantPart(lot_id=id, amount=35, granted_at=AT, expires_at=END) for id in ("a", "b")
    ]
    less = parts.without(parts.kept(known, both), "b", 5)
    assert less.granted == 65
    assert [one.amount for one in parts.of_payment(less)] == [35, 30]
    expired = parts.with_expired(parts.with_expired(less, "a", 4), "a", 3)
    assert [one.expired for one in parts.of_payment(expired)] == [7, 0]
    assert parts.of_payment(parts.kept(known, both)) == both
    assert parts.shares(both, 35) == [18, 17]
    assert parts.shares([], 9) == []


def test_facts_of_a_payment_only_ever_grow() -> None:
    """The greatest refund, total and dispute, and of a dispute the furthest it came."""
    opened = Dispute("dp_1", 500, "open")
    ledger = told(purchase("pi_1", 10))
    ledger.take(
        PaymentObserved(
            payment_ref="pi_1",
            credits=900,
            total=1_000,
            refunded=200,
            disputes=(opened, Dispute("dp_0", 9, "won")),
            at=AT,
        )
    )
    ledger.take(
        PaymentObserved(
            payment_ref="pi_1",
            credits=1_000,
            total=900,
            refunded=100,
            disputes=(Dispute("dp_1", 400, "lost"),),
            at=AT,
        )
    )
    ledger.take(
        PaymentObserved(
            payment_ref="pi_1",
            credits=0,
            total=0,
            refunded=0,
            disputes=(replace(opened, amount=1),),
            at=AT,
        )
    )
    known = ledger.payments["pi_1"]
    assert (known.credits, known.total, known.refunded) == (1_000, 1_000, 200)
    assert known.disputes == '[["dp_0", 9, "won"], ["dp_1", 500, "lost"]]'
    assert (known.refund_removed, known.dispute_removed) == (2 * DOLLAR, 5 * DOLLAR)


def test_what_comes_back_to_a_lot_that_was_closed_is_the_lot_it_was() -> None:
    opened = Dispute("dp_1", 1_000, "open")
    ledger = told(purchase("pi_1", 10))
    (lot,) = ledger.lots.values()
    ledger.take(seen("pi_1", 1_000, 0, opened))
    ledger.take(seen("pi_1", 1_000, 0, replace(opened, status="won")))
    assert list(ledger.state.credits.lots.values()) == [replace(lot, seq=3)]
    again = ledger.take(seen("pi_1", 1_000, 0, opened))
    assert again == ledger.state.credits.standing


def test_of_a_payment_that_was_not_granted_only_what_was_told_is_known() -> None:
    ledger = told(seen("pi_1", 0, 5))
    assert ledger.payments["pi_1"] == CreditedPayment(
        organization_id="org_1",
        payment_ref="pi_1",
        kind=None,
        granted=0,
        granted_at=None,
        expires_at=None,
        credits=0,
        total=0,
        refunded=5,
        disputes="[]",
        refund_removed=0,
        dispute_removed=0,
    )
