"""Reversing an old invoice never takes what a newer one brought (product/billing.md, 4.1)."""

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, purchase, seen
from tolsey.actors.organization.messages import Dispute, ResetAllowance, SpendCredits

END = AT + days(30)


def month(
    invoice: str,
    dollars: int = 49,
    ends_at: datetime = END,
    starts_at: datetime = AT,
    at: datetime | None = None,
) -> ResetAllowance:
    period = starts_at, ends_at, dollars * DOLLAR, at or starts_at
    return ResetAllowance(f"allowance:{invoice}", "pro", *period, invoice, "sub_1")


def renewal(at: datetime = END) -> ResetAllowance:
    return month("in_2", ends_at=END + days(31), starts_at=END, at=at)


def spent(dollars: float) -> SpendCredits:
    return SpendCredits("spend", int(dollars * DOLLAR), "chat", AT)


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
    period = END, END + days(31), 49 * DOLLAR, END
    second = ResetAllowance("allowance:month:2", "pro", *period, "in_1", "sub_1")
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
