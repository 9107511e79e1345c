from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, purchase
from tolsey.actors.organization.ledger.messages import (
    ExtendHold,
    GrantDailyBonus,
    HoldCredits,
    ReadCredits,
    SettleHold,
    SpendCredits,
)
from tolsey.actors.refusals import NotFound, PaymentRequired
from tolsey.storage.records.money.credits import DailyBonus

TODAY = AT.date()
TOMORROW = AT + days(1)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("pro")


def test_the_job_grants_a_plan_its_bonus_once_a_day_for_twelve_months(ledger: Ledger) -> None:
    assert ledger.take(GrantDailyBonus(TODAY, AT)) is True
    assert ledger.take(GrantDailyBonus(TODAY, AT + days(0.2))) is False
    assert ledger.bonuses == [
        DailyBonus(organization_id="org_1", day=TODAY, plan="pro", amount=DOLLAR, at=AT)
    ]
    (grant,) = ledger.take(ReadCredits(AT)).grants
    assert (grant.kind, grant.amount) == ("bonus", DOLLAR)
    assert grant.expires_at == datetime(2027, 7, 1, 12, tzinfo=UTC)
    assert ledger.take(GrantDailyBonus(TOMORROW.date(), TOMORROW)) is True
    assert ledger.state.credits.available == 2 * DOLLAR
    ledger.check()


@pytest.mark.parametrize(("plan", "dollars"), [("pro", 1), ("max_5x", 3), ("max_20x", 5)])
def test_the_first_spending_of_the_day_brings_the_bonus(plan: str, dollars: int) -> None:
    ledger = Ledger(plan)
    left = ledger.take(SpendCredits(key="s:1", amount=DOLLAR // 2, reason="chat", at=AT))
    assert left.available == dollars * DOLLAR - DOLLAR // 2
    ledger.take(SpendCredits(key="s:2", amount=DOLLAR // 2, reason="chat", at=AT + days(0.1)))
    assert ledger.take(GrantDailyBonus(TODAY, AT + days(0.2))) is False
    assert [entry.kind for entry in ledger.entries] == ["bonus", "spend", "spend"]
    assert ledger.accounts["promo"] == -dollars * DOLLAR
    ledger.check()


def test_a_hold_and_its_extension_on_the_next_day_bring_the_bonus_too(ledger: Ledger) -> None:
    ledger.take(HoldCredits(hold_id="h", amount=DOLLAR, at=AT, lease_until=TOMORROW + days(1)))
    ledger.take(ExtendHold(hold_id="h", amount=DOLLAR, at=TOMORROW, lease_until=TOMORROW + days(1)))
    settled = ledger.take(SettleHold("h", 2 * DOLLAR, TOMORROW))
    assert (settled.charged, settled.written_off) == (2 * DOLLAR, 0)
    assert [bonus.day for bonus in ledger.bonuses] == [TODAY, TOMORROW.date()]
    ledger.check()


def test_what_the_bonus_does_not_cover_is_refused_and_the_bonus_is_still_due(
    ledger: Ledger,
) -> None:
    with pytest.raises(PaymentRequired) as refused:
        ledger.take(SpendCredits(key="s", amount=DOLLAR + 1, reason="chat", at=AT))
    assert refused.value.fields["available"] == DOLLAR
    assert ledger.bonuses == []
    assert ledger.take(GrantDailyBonus(TODAY, AT)) is True


def test_the_bonus_pays_a_debt_first(ledger: Ledger) -> None:
    credits = replace(ledger.state.credits, debt=DOLLAR // 4)
    ledger.state = replace(ledger.state, credits=credits)
    ledger.take(GrantDailyBonus(TODAY, AT))
    assert (ledger.state.credits.debt, ledger.state.credits.available) == (0, DOLLAR * 3 // 4)


def test_the_free_plan_has_no_bonus() -> None:
    ledger = Ledger()
    assert ledger.take(GrantDailyBonus(TODAY, AT)) is False
    ledger.take(purchase("pi_1", 1))
    ledger.take(SpendCredits(key="s", amount=DOLLAR, reason="chat", at=AT))
    assert ledger.bonuses == []


def test_a_clock_that_goes_back_over_midnight_brings_no_day_twice(ledger: Ledger) -> None:
    midnight = datetime(2026, 7, 2, tzinfo=UTC)
    ledger.take(SpendCredits(key="s:1", amount=1, reason="chat", at=midnight))
    ledger.take(
        SpendCredits(key="s:2", amount=1, reason="chat", at=midnight - timedelta(seconds=1))
    )
    ledger.take(
        SpendCredits(key="s:3", amount=1, reason="chat", at=midnight + timedelta(seconds=1))
    )
    assert [bonus.day for bonus in ledger.bonuses] == [date(2026, 7, 2)]


def test_after_a_crash_the_day_is_known_to_have_had_its_bonus(ledger: Ledger) -> None:
    ledger.take(GrantDailyBonus(TODAY, AT))
    ledger.crash()
    ledger.take(SpendCredits(key="s", amount=1, reason="chat", at=AT))
    assert len(ledger.bonuses) == 1


def test_nobody_has_no_bonus(ledger: Ledger) -> None:
    ledger.state = replace(ledger.state, exists=False)
    with pytest.raises(NotFound):
        ledger.take(GrantDailyBonus(TODAY, AT))
