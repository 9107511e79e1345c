"""What a tool tells is read of the answer that the route of the same thing gives."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger.messages import CreditsView, Grant, Standing
from tolsey.actors.organization.plans import Plan
from tolsey.http.answers.money.credits import CreditsAnswer, MoneyAnswer, PlanAnswer
from tolsey.http.mcp.tools.answers import DecimalMoney, known_money
from tolsey.http.mcp.tools.building import ReadTools
from tolsey.http.mcp.tools.reads.facts import FactsPart
from tolsey.http.mcp.tools.reads.money import CreditBalance, CreditGrant, PlanLimits
from tolsey.http.mcp.tools.reads.orders import RefundSummary
from tolsey.http.mcp.tools.registry import READERS

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize("plan", plans.CATALOGUE, ids=lambda plan: plan.code)
def test_limits_are_those_that_the_plans_route_answers(plan: Plan) -> None:
    answer = PlanAnswer.of(plan)
    answered = PlanLimits.read(answer, plan=plan.code, stores_used=0, mcp_quotas=[])
    assert answered.concurrent_workflows == answer.concurrent_workflows
    for tool, route in (
        (answered.monthly_credits, answer.monthly_credits),
        (answered.daily_bonus, answer.daily_bonus),
    ):
        assert (tool and Decimal(tool.amount) * 100) == (route and route.amount)


def test_credits_are_those_that_the_credits_route_answers() -> None:
    grant = Grant(
        id="g",
        kind="bonus",
        amount=9_000_000,
        remaining=4_500_001,
        granted_at=AT,
        expires_at=AT + timedelta(days=9),
        reference=None,
    )
    view = CreditsView(
        standing=Standing(seq=1, balance=4_500_001, available=4_000_000, held=500_001),
        grants=(grant,),
        next_expiry=grant.expires_at,
        total=1,
    )
    answer = CreditsAnswer.of(view)
    answered = CreditBalance.read(answer, grants=[CreditGrant.read(one) for one in answer.grants])
    assert answered.model_dump(exclude={"grants"}) == {
        "balance": {"amount": "4.500001", "currency": "USD"},
        "available": {"amount": "4.00", "currency": "USD"},
        "held": {"amount": "0.500001", "currency": "USD"},
        "grants_total": 1,
        "next_expiry": grant.expires_at,
        "next_cursor": None,
    }
    assert answered.grants[0].remaining.amount == "4.500001"


@pytest.mark.parametrize(
    ("minor", "currency", "written"),
    [(123_456, "EUR", "1234.56"), (-5, "USD", "-0.05"), (900, "JPY", "900"), (1, "KWD", "0.001")],
)
def test_an_amount_is_written_with_the_digits_of_its_currency(
    minor: int, currency: str, written: str
) -> None:
    assert known_money(minor, currency) == DecimalMoney(amount=written, currency=currency)
    answer = MoneyAnswer(amount=minor, currency=currency)
    limits = PlanLimits.model_validate(
        {
            **dict.fromkeys(("plan", "name"), "x"),
            **dict.fromkeys(("stores_included", "concurrent_workflows", "daily_bonus")),
            "stores_used": 0,
            "monthly_credits": answer,
            "mcp_quotas": [],
        }
    )
    assert limits.monthly_credits == known_money(minor, currency)


def test_a_row_is_read_by_names_and_its_numbers_are_ids() -> None:
    row = {"refund_id": 7, "processed_at": AT, "amount_minor": 5}
    answered = RefundSummary.read(row, id=row["refund_id"], amount=None)
    assert answered == RefundSummary(id="7", amount=None, processed_at=AT)


def test_every_list_of_what_the_shop_told_says_since_when() -> None:
    part = FactsPart[RefundSummary](facts_since=AT, items=[], next_cursor=None)
    assert list(part.model_dump()) == ["facts_since", "items", "next_cursor"]
    assert all(issubclass(kind, ReadTools) for kind in READERS)
