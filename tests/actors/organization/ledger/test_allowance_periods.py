"""How long an allowance stands: from its period's beginning until the next one, or its end."""

from dataclasses import replace

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, Unrenewed, days, purchase, seen
from tests.actors.organization.ledger.test_ledger import END, allowance, remaining
from tolsey.actors.organization.ledger import parts
from tolsey.actors.organization.ledger.messages import (
    Dispute,
    ExpireCredits,
    GrantCredits,
    HoldCredits,
    ReadCredits,
    ResetAllowance,
    SettleHold,
    SpendCredits,
)

RENEWED = replace(allowance("a", 49), reference="pi_sub", renewed_by="sub_1")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_an_allowance_is_said_to_end_with_its_period_and_waits_for_a_late_renewal(
    ledger: Ledger,
) -> None:
    ledger.take(RENEWED)
    view = ledger.take(ReadCredits(AT))
    assert (view.next_expiry, view.grants[0].expires_at) == (END, END)
    ledger.take(ExpireCredits(END + days(1)))
    ledger.crash()
    view = ledger.take(ReadCredits(END + days(1)))
    assert (view.standing.available, view.next_expiry) == (49 * DOLLAR, END + days(3))
    late = replace(RENEWED, key="b", period_start=END, period_end=END + days(31), at=END + days(2))
    assert ledger.take(late).available == 49 * DOLLAR
    assert ledger.accounts["expired"] == 49 * DOLLAR
    assert ledger.take(ExpireCredits(END + days(34))).available == 0
    ledger.check()


def test_an_allowance_is_spent_before_what_expires_after_its_period(ledger: Ledger) -> None:
    ledger.take(
        GrantCredits(key="bonus", kind="bonus", amount=DOLLAR, at=AT, expires_at=END + days(1))
    )
    ledger.take(RENEWED)
    ledger.take(SpendCredits(key="s", amount=49 * DOLLAR, reason="chat", at=AT))
    assert remaining(ledger) == {"bonus": 1}


def test_an_allowance_that_nobody_renews_ends_with_its_period(ledger: Ledger) -> None:
    ledger.take(RENEWED)
    ledger.take(Unrenewed("sub_2", END + days(1)))
    assert ledger.state.credits.available == 49 * DOLLAR
    ledger.take(
        HoldCredits(hold_id="h", amount=9 * DOLLAR, at=END + days(1), lease_until=END + days(20))
    )
    assert ledger.take(Unrenewed("sub_1", END + days(1))).balance == 9 * DOLLAR
    assert ledger.take(SettleHold("h", 2 * DOLLAR, END + days(2))).standing.balance == 0
    assert ledger.accounts["expired"] == 47 * DOLLAR
    ledger.check()


def test_an_end_that_is_told_within_the_period_takes_nothing_of_it(ledger: Ledger) -> None:
    ledger.take(RENEWED)
    assert ledger.take(Unrenewed("sub_1", AT + days(1))).available == 49 * DOLLAR
    ledger.crash()
    assert ledger.take(ExpireCredits(END)).available == 0
    ledger.check()


def test_what_was_granted_before_ends_when_it_was_to(ledger: Ledger) -> None:
    ledger.take(replace(RENEWED, renewed_by=None))
    (lot,) = ledger.lots.values()
    ledger.lots = {lot.id: replace(lot, expires_at=END + days(3))}
    known = ledger.payments["pi_sub"]
    (part,) = parts.of_payment(known)
    later = parts.kept(known, [replace(part, expires_at=END + days(3))])
    ledger.payments = {"pi_sub": replace(later, expires_at=END + days(3))}
    ledger.crash()
    ledger.take(seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "open")))
    ledger.take(seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "won")))
    assert [one.kind for one in ledger.state.credits.lots.values()] == ["allowance"]
    assert ledger.take(ExpireCredits(END + days(2))).available == 49 * DOLLAR
    assert ledger.take(ExpireCredits(END + days(3))).available == 0


def test_the_period_that_began_last_stands_though_it_ends_first(ledger: Ledger) -> None:
    """Bought on the 30th at noon, and again on the morning of the 31st: April has no 31st."""
    first = ResetAllowance(
        key="a",
        plan="pro",
        period_start=AT,
        period_end=END,
        allowance=49 * DOLLAR,
        at=AT,
        reference="pi_sub",
    )
    second = ResetAllowance(
        key="b",
        plan="max_5x",
        period_start=AT + days(0.9),
        period_end=END - days(0.1),
        allowance=149 * DOLLAR,
        at=AT + days(0.9),
        reference="pi_new",
    )
    ledger.take(first)
    assert ledger.take(second).available == 149 * DOLLAR
    assert ledger.take(replace(first, key="again")).available == 149 * DOLLAR
    ledger.crash()
    third = replace(second, key="c", period_start=AT + days(1), period_end=END)
    assert ledger.take(third).available == 149 * DOLLAR
    assert [one.period_end for one in ledger.resets] == [END, END - days(0.1), END]
    ledger.take(seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "open")))
    ledger.check()


def test_a_period_whose_beginning_is_not_written_gives_way_to_one_that_ends_later(
    ledger: Ledger,
) -> None:
    ledger.take(allowance("a", 49))
    written = replace(ledger.state.credits, period_start=None)
    ledger.state = ledger.state.with_credits(written)
    older = ResetAllowance(
        key="b",
        plan="pro",
        period_start=AT + days(1),
        period_end=END - days(1),
        allowance=149 * DOLLAR,
        at=AT,
    )
    assert ledger.take(older).available == 49 * DOLLAR
    assert ledger.take(allowance("c", 99, END + days(31), END)).available == 99 * DOLLAR


def test_a_dispute_won_after_its_month_gives_back_what_others_paid(ledger: Ledger) -> None:
    ledger.take(replace(allowance("a", 49), reference="pi_sub"))
    ledger.take(SpendCredits(key="s", amount=49 * DOLLAR, reason="chat", at=AT))
    ledger.take(purchase("pi_1", 50))
    later = END + days(40)
    lost = seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "open"), at=later)
    assert ledger.take(lost).available == DOLLAR
    won = seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "won"), at=later + days(60))
    assert ledger.take(won).available == 50 * DOLLAR
    assert ledger.take(ExpireCredits(later + days(61))).available == 50 * DOLLAR
    ledger.check()


def test_a_dispute_won_within_its_month_gives_the_allowance_back(ledger: Ledger) -> None:
    ledger.take(replace(allowance("a", 49), reference="pi_sub"))
    ledger.take(seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "open")))
    ledger.take(seen("pi_sub", 7_900, 0, Dispute("dp_1", 7_900, "won")))
    assert [lot.kind for lot in ledger.state.credits.lots.values()] == ["allowance"]
    assert ledger.take(allowance("b", 49, END + days(31), END)).available == 49 * DOLLAR
