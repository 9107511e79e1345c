import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, seen
from tolsey.actors.organization.agreements.messages import (
    ContractPapers,
    ContractTerms,
    ContractView,
    PaidPeriod,
    SetContract,
    StartMonth,
)
from tolsey.actors.organization.ledger.messages import GrantDailyBonus, ReadCredits, SpendCredits
from tolsey.actors.organization.months import Month, month_of, months_after
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.records.money.subscription import SubscriptionRecord

TERMS = ContractTerms(120, 1_000 * DOLLAR, 10 * DOLLAR)
AUGUST = datetime(2026, 8, 1, 12, tzinfo=UTC)
YEAR = PaidPeriod(
    subscription_id="sub_1",
    plan="pro",
    starts_at=AT,
    ends_at=months_after(AT, 12),
    payment_ref="in_1",
)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def contract(terms: ContractTerms | None, at: datetime = AT) -> SetContract:
    return SetContract(terms=terms, reason="signed", user_id="usr_admin", at=at)


def test_a_contract_puts_an_organization_on_custom_and_starts_its_first_month(
    ledger: Ledger,
) -> None:
    assert ledger.take(contract(TERMS)) == ContractView(plan="custom", terms=TERMS, since=AT)
    assert (ledger.state.plan, ledger.state.stores_contracted) == ("custom", 120)
    assert ledger.contracts == [
        Contract(
            organization_id="org_1",
            monthly_allowance=1_000 * DOLLAR,
            daily_bonus=10 * DOLLAR,
            since=AT,
            ended_at=None,
        )
    ]
    (grant,) = ledger.take(ReadCredits(AT)).grants
    assert (grant.kind, grant.amount) == ("allowance", 1_000 * DOLLAR)
    assert ledger.state.credits.period_end == AUGUST
    assert ledger.take(GrantDailyBonus(AT.date(), AT)) is True
    assert ledger.bonuses[0].amount == 10 * DOLLAR
    ledger.check()


def test_who_agreed_to_what_and_why_is_written_down(ledger: Ledger) -> None:
    ledger.take(contract(TERMS))
    ledger.take(contract(None))
    signed, ended = [one for one in ledger.audit if one.event.startswith("subscription.")]
    assert (signed.event, signed.actor) == ("subscription.contracted", "usr_admin")
    assert json.loads(signed.metadata) == {
        "reason": "signed",
        "before": None,
        "after": {
            "storesIncluded": 120,
            "monthlyAllowance": 1_000 * DOLLAR,
            "dailyBonus": 10 * DOLLAR,
        },
    }
    assert ended.event == "subscription.contract_ended"


def test_the_same_terms_again_change_nothing(ledger: Ledger) -> None:
    ledger.take(contract(TERMS))
    seq = ledger.state.credits.seq
    assert ledger.take(contract(TERMS, AT + days(3))) == ContractView(
        plan="custom", terms=TERMS, since=AT
    )
    assert (ledger.state.credits.seq, len(ledger.contracts)) == (seq, 1)


def test_a_higher_allowance_tops_the_month_up_and_a_lower_one_takes_nothing(
    ledger: Ledger,
) -> None:
    ledger.take(contract(TERMS))
    ledger.take(SpendCredits(key="s", amount=100 * DOLLAR, reason="chat", at=AT))
    ledger.take(contract(replace(TERMS, monthly_allowance=1_500 * DOLLAR), AT + days(3)))
    assert ledger.state.credits.available == (1_400 + 10) * DOLLAR
    ledger.take(contract(replace(TERMS, monthly_allowance=5 * DOLLAR), AT + days(4)))
    ledger.take(contract(replace(TERMS, monthly_allowance=1_500 * DOLLAR), AT + days(5)))
    assert ledger.state.credits.available == (1_400 + 10) * DOLLAR
    ledger.check()


def test_each_month_of_a_contract_is_granted_once_and_what_was_left_expires(
    ledger: Ledger,
) -> None:
    ledger.take(contract(TERMS))
    assert ledger.take(StartMonth(AT + days(30))) is False
    assert ledger.take(StartMonth(AUGUST)) is True
    assert ledger.take(StartMonth(AUGUST + days(1))) is False
    assert ledger.state.credits.available == 1_000 * DOLLAR
    assert ledger.accounts["expired"] == 1_000 * DOLLAR
    assert [reset.plan for reset in ledger.resets] == ["custom", "custom"]
    ledger.check()


def test_a_contract_that_ends_leaves_the_free_plan_and_what_was_granted(ledger: Ledger) -> None:
    ledger.take(contract(TERMS))
    view = ledger.take(contract(None, AT + days(3)))
    assert view == ContractView(plan="free", terms=None, since=None)
    assert (ledger.state.plan, ledger.state.stores_contracted) == ("free", None)
    assert ledger.contracts[-1].ended_at == AT + days(3)
    assert ledger.take(StartMonth(AUGUST)) is False
    assert ledger.state.credits.available == 1_000 * DOLLAR


def test_a_contract_that_ends_leaves_nothing_of_its_month_when_that_is_over(ledger: Ledger) -> None:
    ledger.take(contract(TERMS))
    ledger.take(contract(None, AT + days(3)))
    assert ledger.take(ReadCredits(AUGUST)).standing.available == 0
    ledger.take(contract(TERMS, AUGUST))
    ledger.take(contract(None, AUGUST + days(32)))
    assert ledger.state.credits.available == 0
    ledger.check()


@pytest.mark.parametrize(
    ("status", "plan"), [("active", "max_5x"), ("past_due", "max_5x"), ("canceled", "free")]
)
def test_a_contract_that_ends_leaves_the_plan_that_is_paid_for(
    ledger: Ledger, status: str, plan: str
) -> None:
    ledger.take(contract(TERMS))
    known = SubscriptionRecord(
        organization_id="org_1", subscription_id="sub_1", status=status, paid_plan="max_5x"
    )
    ledger.state = replace(ledger.state, subscription=known)
    assert ledger.take(contract(None, AT + days(3))) == ContractView(
        plan=plan, terms=None, since=None
    )
    assert ledger.state.plan == plan


@pytest.mark.parametrize("plan", ["pro", "max_5x", "max_20x"])
def test_a_contract_waits_for_the_end_of_a_subscription(plan: str) -> None:
    with pytest.raises(Conflict) as refused:
        Ledger(plan).take(contract(TERMS))
    assert refused.value.code == "subscription_exists"


def test_ending_what_never_was_changes_nothing(ledger: Ledger) -> None:
    assert ledger.take(contract(None)) == ContractView(plan="free", terms=None, since=None)
    assert ledger.audit == []
    ledger.state = replace(ledger.state, exists=False)
    with pytest.raises(NotFound):
        ledger.take(contract(TERMS))
    with pytest.raises(NotFound):
        ledger.take(StartMonth(AT))


def test_a_paid_year_is_granted_month_by_month_and_no_month_more() -> None:
    ledger = Ledger("pro")
    granted = [ledger.take(StartMonth(AT + days(n), YEAR)) for n in range(0, 420, 2)]
    assert sum(granted) == 12
    assert len({reset.period_end for reset in ledger.resets}) == 12
    assert max(reset.period_end for reset in ledger.resets) == YEAR.ends_at
    assert -ledger.accounts["promo"] == 12 * 49 * DOLLAR
    ledger.check()


def test_a_month_that_was_missed_is_not_granted_later() -> None:
    ledger = Ledger("pro")
    ledger.take(StartMonth(AT, YEAR))
    assert ledger.take(StartMonth(months_after(AT, 3), YEAR)) is True
    assert ledger.take(StartMonth(months_after(AT, 1), YEAR)) is False
    assert ledger.state.credits.available == 49 * DOLLAR


def test_the_years_refund_takes_back_what_its_months_granted_and_will_grant() -> None:
    ledger = Ledger("pro")
    ledger.take(StartMonth(AT, YEAR))
    ledger.take(seen("in_1", 750_00, 375_00))
    assert ledger.state.credits.available == 49 * DOLLAR // 2
    ledger.take(StartMonth(AUGUST, YEAR))
    assert ledger.state.credits.available == 49 * DOLLAR // 2
    ledger.check()


def test_a_year_of_another_plan_or_time_grants_nothing() -> None:
    assert Ledger("free").take(StartMonth(AT, YEAR)) is False
    assert Ledger("max_5x").take(StartMonth(AT, YEAR)) is False
    assert Ledger("pro").take(StartMonth(AT - days(1), YEAR)) is False
    assert Ledger("pro").take(StartMonth(YEAR.ends_at, YEAR)) is False


def test_months_are_counted_from_the_first_day_and_end_with_shorter_ones() -> None:
    since = datetime(2027, 10, 31, 9, tzinfo=UTC)
    ends = [months_after(since, n) for n in range(1, 5)]
    assert [(end.month, end.day) for end in ends] == [(11, 30), (12, 31), (1, 31), (2, 29)]
    assert month_of(since, since) == Month(0, ends[0])
    assert month_of(since, since - days(40)) == Month(0, ends[0])
    assert month_of(since, ends[0] - days(0.001)) == Month(0, ends[0])
    assert month_of(since, ends[0]) == Month(1, ends[1])
    assert month_of(since, datetime(2028, 2, 29, 8, tzinfo=UTC)) == Month(3, ends[3])
    assert month_of(since, datetime(2028, 2, 29, 9, tzinfo=UTC)).number == 4


def test_the_check_of_the_customer_and_the_signed_paper_are_recorded(ledger: Ledger) -> None:
    """What is filed later is recorded with what was; the terms stay what they are."""
    first = replace(contract(TERMS), papers=ContractPapers(kyc="case 17"))
    assert ledger.take(first).papers == ContractPapers("case 17", None)
    signed = replace(contract(TERMS), papers=ContractPapers(signed_contract="drawer 4"))
    assert ledger.take(signed).papers == ContractPapers("case 17", "drawer 4")
    assert (ledger.contracts[-1].kyc, ledger.contracts[-1].signed_contract) == (
        "case 17",
        "drawer 4",
    )
    assert json.loads(ledger.audit[-1].metadata)["papers"]["signed_contract"] == "drawer 4"
    assert ledger.take(contract(TERMS)).papers == ContractPapers("case 17", "drawer 4")
