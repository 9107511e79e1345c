"""Changing a plan: which call follows, what is put back, and what whoever asks is told."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from tests.actors.organization.processor import END, START
from tests.actors.organization.pure_organization import (
    AT,
    DAY,
    MAX_5X,
    PureOrganization,
    invoice,
    line,
    subscription,
)
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import acts, changes
from tolsey.actors.organization.billing.calls import (
    CancelSubscription,
    NextChange,
    PlanChangeMade,
    PlanChangeRefused,
    ReleaseSchedule,
    RestoreChange,
    ScheduleDowngrade,
    UpgradeSubscription,
)
from tolsey.actors.organization.billing.messages import (
    CancelPlan,
    ChangePlan,
    list_priced_offers,
)
from tolsey.actors.refusals import Conflict, Refusal
from tolsey.runtime.decision import Decision
from tolsey.storage.records.runtime.operations import Operation

PRICE_IDS = {
    price.setting: f"price_{plan.code}_{cadence}"
    for plan in plans.CATALOGUE
    for cadence, price in plan.prices.items()
}
LATER = AT + timedelta(seconds=2)
DECLINED = PlanChangeRefused(
    operation_id="op",
    at=LATER,
    status=402,
    code="card_refused",
    detail="Declined.",
    processor_code="card_declined",
)
UNREACHED = CancelSubscription(
    organization_id="org_1", operation_id="op", subscription_id="sub_1", schedule_id=None
).given_up("", LATER)
WHOSE = {"organization_id": "org_1", "operation_id": "op", "subscription_id": "sub_1"}


def max_5x() -> PureOrganization:
    """Max 5x, paid by the month."""
    told = PureOrganization()
    told.tell("customer.subscription.created", subscription(MAX_5X))
    told.tell("invoice.paid", invoice("in_1", line(MAX_5X, 19_900)))
    return told


def before_pro() -> PureOrganization:
    """Max 5x, which Pro waits for."""
    told = max_5x()
    coming = acts.coming(told.subscription, NextChange("sub_sched_1", "pro", "monthly"))
    told.state = replace(told.state, subscription=coming)
    return told


@pytest.fixture
def told() -> PureOrganization:
    return max_5x()


@pytest.fixture
def scheduled() -> PureOrganization:
    return before_pro()


@pytest.fixture
def ending(told: PureOrganization) -> PureOrganization:
    """Max 5x, which ends with its period."""
    ends = subscription(MAX_5X, cancel_at_period_end=True)
    told.tell("customer.subscription.updated", ends, created=START + DAY)
    return told


def ask(
    told: PureOrganization, plan: str | None, id: str = "op", **more: Any
) -> Decision[Any, Operation]:
    """Choose a plan, or None to cancel."""
    given: dict[str, Any] = {"price_ids": PRICE_IDS, "user_id": "usr_1", "at": AT, **more}
    if plan is None:
        decision = changes.cancel(told.state, CancelPlan(operation_id=id, **given), None)
    else:
        decision = changes.change(
            told.state, ChangePlan(operation_id=id, plan=plan, cadence="monthly", **given), None
        )
    told.state = decision.state
    told.records += decision.records
    return decision


def called(decision: Decision[Any, Any]) -> Sequence[Any]:
    return [effect.call for effect in decision.effects]  # type: ignore[union-attr]  # none tells


def hear(
    told: PureOrganization, message: PlanChangeMade | PlanChangeRefused
) -> Decision[Any, None]:
    turn = changes.made if isinstance(message, PlanChangeMade) else changes.refused
    decision = turn(told.state, message)  # type: ignore[arg-type]  # of the two, its own
    told.state = decision.state
    told.records += decision.records
    return decision


def outcome(decision: Decision[Any, None]) -> Any:
    return (decision.resolve or {}).get("operation:op")


def test_an_upgrade_is_one_call_that_takes_off_what_waits(scheduled: PureOrganization) -> None:
    (up,) = called(ask(scheduled, "max_20x"))
    assert isinstance(up, UpgradeSubscription)
    assert (up.held.schedule_id, up.price_id) == ("sub_sched_1", "price_max_20x_monthly")
    assert up.key == f"upgrade:sub_1:{MAX_5X}:price_max_20x_monthly:{END}:0"
    assert up.until == AT + timedelta(minutes=15)
    assert scheduled.audit[-1] == "plan.change_requested"


@pytest.mark.parametrize(
    ("plan", "call"),
    [
        (None, CancelSubscription(**WHOSE, schedule_id="sub_sched_1")),
        ("max_5x", ReleaseSchedule(**WHOSE, schedule_id="sub_sched_1", resumes=False)),
    ],
)
def test_a_change_that_waits_is_released(
    scheduled: PureOrganization, plan: str | None, call: Any
) -> None:
    assert called(ask(scheduled, plan)) == [call]


def test_what_ends_goes_on_first(ending: PureOrganization) -> None:
    (down,) = called(ask(ending, "pro"))
    assert isinstance(down, ScheduleDowngrade)
    assert down.resumes
    assert called(ask(PureOrganization(ending.state), "pro", id="op")) == []


def test_an_end_that_is_chosen_again_is_told_and_not_asked_for(ending: PureOrganization) -> None:
    again = ask(ending, None)
    assert (again.reply.state, again.effects, again.records) == ("done", (), ())  # type: ignore[union-attr]  # it is not parked


def test_what_is_done_is_told_with_the_time_from_which_it_counts(told: PureOrganization) -> None:
    ask(told, "max_20x")
    done = outcome(hear(told, PlanChangeMade(operation_id="op", at=LATER)))
    assert (done.state, plans.rfc3339(LATER) in done.result) == ("done", True)
    ask(told, "pro", id="op_2")
    hear(
        told,
        PlanChangeMade(
            operation_id="op_2", at=LATER, next=NextChange("sub_sched_2", "pro", "monthly")
        ),
    )
    assert (told.subscription.schedule_id, told.subscription.next_plan) == ("sub_sched_2", "pro")


def test_a_refused_upgrade_is_counted_so_that_the_next_is_another(told: PureOrganization) -> None:
    for n in range(2):
        (up,) = called(ask(told, "max_20x", id=f"op_{n}"))
        assert up.key.endswith(f":{n}")
        why = hear(told, replace(DECLINED, operation_id=f"op_{n}")).resolve or {}
        refusal = why[f"operation:op_{n}"]
        assert (refusal.status, refusal.code) == (402, "card_refused")
        assert refusal.fields == {"processorCode": "card_declined"}
    assert told.audit.count("plan.change_refused") == 2


@pytest.mark.parametrize("plan", ["max_20x", "pro", None])
def test_what_nobody_answered_is_not_counted(told: PureOrganization, plan: str | None) -> None:
    ask(told, plan)
    assert outcome(hear(told, UNREACHED)).code == "processor_unreachable"
    assert told.subscription.refused_changes == 0


@pytest.mark.parametrize("why", [DECLINED, UNREACHED])
@pytest.mark.parametrize("plan", ["max_20x", None])
def test_whoever_asks_is_told_of_a_failure_when_what_waited_is_back(
    scheduled: PureOrganization, plan: str | None, why: PlanChangeRefused
) -> None:
    ask(scheduled, plan)
    failed = hear(scheduled, why)
    assert outcome(failed) is None
    restored = RestoreChange(
        **WHOSE,
        held_price_id=MAX_5X,
        price_id="price_pro_monthly",
        plan="pro",
        cadence="monthly",
    )
    assert called(failed) == [restored]
    back = PlanChangeMade(
        operation_id="op", at=LATER, next=NextChange("sub_sched_2", "pro", "monthly")
    )
    refusal = outcome(hear(scheduled, back))
    assert (refusal.status, refusal.code) == (why.status, why.code)
    assert scheduled.subscription.schedule_id == "sub_sched_2"
    assert scheduled.audit[-1] == "plan.change_restored"


def test_what_has_something_else_in_its_place_is_not_said_to_be_back(
    scheduled: PureOrganization,
) -> None:
    ask(scheduled, "max_20x")
    hear(scheduled, UNREACHED)
    assert isinstance(
        outcome(hear(scheduled, PlanChangeMade(operation_id="op", at=LATER, is_done=False))),
        Refusal,
    )
    assert "plan.change_restored" not in scheduled.audit


def test_what_cannot_be_put_back_is_written_down_and_the_first_reason_told(
    ending: PureOrganization,
) -> None:
    ask(ending, "pro")
    (undo,) = called(hear(ending, DECLINED))
    assert (undo.plan, undo.price_id) == ("free", "")
    lost = outcome(
        hear(
            ending,
            PlanChangeRefused(
                operation_id="op", at=LATER, status=422, code="processor_rejected", detail="No."
            ),
        )
    )
    assert lost.code == "card_refused"
    assert ending.audit[-1] == "plan.change_lost"


def test_only_one_change_is_under_way_and_who_asks_for_it_again_waits_with_the_first(
    told: PureOrganization,
) -> None:
    first = ask(told, "max_20x").reply
    again = ask(told, "max_20x", id="op_2")
    assert (again.reply, again.effects) == (first, ())
    for plan in ("pro", None):
        with pytest.raises(Conflict) as caught:
            ask(told, plan, id="op_2")
        assert (caught.value.code, caught.value.fields) == (
            "change_in_progress",
            {"operation": "op"},
        )
    hear(told, PlanChangeMade(operation_id="op", at=LATER))
    assert called(ask(told, None, id="op_2"))


def test_what_is_owed_is_paid_before_more_is_bought_and_not_before_less(
    told: PureOrganization,
) -> None:
    owing = replace(told.subscription, status="past_due")
    told.state = replace(told.state, subscription=owing)
    with pytest.raises(Conflict) as caught:
        ask(told, "max_20x")
    assert caught.value.code == "payment_due"
    assert called(ask(told, "pro"))


@pytest.mark.parametrize(
    ("status", "plan", "code"),
    [
        ("canceled", "pro", "no_subscription"),
        ("canceled", None, "no_subscription"),
        ("paused", "pro", "subscription_not_active"),
    ],
)
def test_what_is_not_there_is_not_changed(
    told: PureOrganization, status: str, plan: str | None, code: str
) -> None:
    told.state = replace(told.state, subscription=replace(told.subscription, status=status))
    with pytest.raises(Conflict) as caught:
        ask(told, plan)
    assert caught.value.code == code


def test_an_answer_to_a_change_that_nobody_knows_changes_nothing(told: PureOrganization) -> None:
    for message in (
        PlanChangeMade(operation_id="op_9", at=LATER),
        replace(DECLINED, operation_id="op_9"),
    ):
        before = told.state
        assert hear(told, message).state is before


GRANDFATHERED = list_priced_offers(
    {setting: (f"{id}_raised", id) for setting, id in PRICE_IDS.items()}
)


@pytest.mark.parametrize(
    ("plan", "change"), [("pro", "downgrade"), ("max_20x", "upgrade"), ("max_5x", None)]
)
def test_a_change_from_a_price_no_longer_sold_sells_the_first_price(
    told: PureOrganization, plan: str, change: str | None
) -> None:
    sold = {setting: f"{id}_raised" for setting, id in PRICE_IDS.items()}
    more: dict[str, Any] = {"price_ids": sold, "offers": GRANDFATHERED}
    # The upgrade to Max 5x is not paid yet: the subscription's price alone says what it is to.
    told.state = replace(told.state, subscription=replace(told.subscription, plan="free"))
    if change is None:
        with pytest.raises(Conflict) as caught:
            ask(told, plan, **more)
        assert caught.value.code == "plan_unchanged"
        return
    decision = ask(told, plan, **more)
    (call,) = called(decision)
    assert isinstance(decision.reply, Operation)
    assert orjson.loads(decision.reply.result or "")["change"] == change
    assert (call.held.price_id, call.price_id) == (MAX_5X, f"price_{plan}_monthly_raised")


def test_a_change_asked_by_the_release_before_recognises_the_prices_that_it_sells(
    told: PureOrganization,
) -> None:
    told.state = replace(told.state, subscription=replace(told.subscription, plan="free"))
    (down,) = called(ask(told, "pro", offers=()))
    assert isinstance(down, ScheduleDowngrade)


def test_a_price_that_is_not_set_is_named_before_anything_is_asked(told: PureOrganization) -> None:
    with pytest.raises(Refusal, match="PAYMENTS_PRICE_PRO_MONTHLY"):
        ask(told, "pro", price_ids={})
