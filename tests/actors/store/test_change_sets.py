"""Changes that were planned together: one at a time in their order, stopped, resumed, and over with their last."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.actors.store.test_edits_in_turn import EMPTY, NOON, called, sent, states, wish
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.editing import change_sets, operations
from tolsey.actors.store.editing.change_sets import MOST_PLANS, STOPPED_LIFE, state_of
from tolsey.actors.store.editing.messages import (
    BeginChangeSet,
    ChangeSetExpired,
    ChangeSetView,
    OperationApplied,
    OperationGivenUp,
    OperationNotSent,
    OperationUnanswered,
    PlannedChange,
    ResumeChangeSet,
    StopChangeSet,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Tell
from tolsey.storage.records.commerce.agent_operation import AgentOperation

IDS = ("op_1.001", "op_1.002", "op_1.003")


def many(change_set: str = "op_1", digest: str = "d", tool: str = "tag_order") -> BeginChangeSet:
    return BeginChangeSet(
        change_set=change_set,
        user_id="usr_1",
        client_id="client_1",
        digest=digest,
        changes=tuple(
            PlannedChange(
                operation_id=f"{change_set}.{place:03}",
                tool=tool,
                subject=f"order/{place}",
                intent="sealed",
                before="{}",
                after="{}",
            )
            for place in (1, 2, 3)
        ),
        at=NOON,
    )


def begun() -> StoreState:
    return change_sets.begin(EMPTY, many(), None).state


def applied(state: StoreState, id: str) -> Decision[StoreState, None]:
    return operations.applied(
        state,
        OperationApplied(operation_id=id, before="{}", after="{}", version="v", at=NOON),
    )


def steered(kind: Any, **more: Any) -> Any:
    given = {"change_set": "op_1", "user_id": "usr_2", "is_person": False, "at": NOON, **more}
    return kind(**given)


def test_changes_of_a_plan_are_made_one_after_the_other_beside_others_of_the_store() -> None:
    decision = change_sets.begin(EMPTY, many(), None)
    assert decision.reply == Parked("change-set:op_1")
    assert states(decision.state) == dict(zip(IDS, ("running", "waiting", "waiting"), strict=True))
    beside = operations.begin(decision.state, wish("op_9", "product/7"), None).state
    assert states(beside)["op_9"] == "running"
    second = applied(beside, IDS[0])
    assert [one.operation_id for one in called(second)] == [IDS[1]]
    last = applied(applied(second.state, IDS[1]).state, IDS[2])
    assert (last.resolve or {})["change-set:op_1"] == ChangeSetView(change_set="op_1", state="over")


def test_one_that_nobody_answered_keeps_the_next_waiting_no_longer() -> None:
    lost = operations.unanswered(
        sent(begun(), IDS[0]), OperationUnanswered(IDS[0], is_unchanged=False, at=NOON)
    )
    assert states(lost.state)[IDS[1]] == "running"


def test_the_same_plan_is_joined_and_another_under_its_id_refused() -> None:
    state = begun()
    assert change_sets.begin(state, many(), None).reply == Parked("change-set:op_1")
    for digest, asked in (("e", many(digest="e")), ("d", replace(many(), is_repeat=True))):
        with pytest.raises(Refusal) as refused:
            change_sets.begin(state if digest == "e" else EMPTY, asked, None)
        assert refused.value.code == {"e": "idempotency_key_reused", "d": "unavailable"}[digest]
    with pytest.raises(Refusal) as refused:
        operations.begin(state, wish("op_1", digest="x"), None)
    assert refused.value.code == "idempotency_key_reused"
    with pytest.raises(Refusal) as refused:
        change_sets.begin(EMPTY, many(tool="refund_order"), None)
    assert refused.value.code == "proposal_required"


def test_a_store_has_only_so_many_plans_at_once() -> None:
    state = EMPTY
    for number in range(MOST_PLANS):
        state = change_sets.begin(state, many(f"op_{number}"), None).state
    with pytest.raises(Refusal) as refused:
        change_sets.begin(state, many("op_9"), None)
    assert refused.value.code == "overloaded"


def test_what_a_person_stopped_only_a_person_resumes() -> None:
    stopped = change_sets.stop(begun(), steered(StopChangeSet, is_person=True), None)
    assert stopped.reply == ChangeSetView(change_set="op_1", state="stopped")
    assert (stopped.resolve or {})["change-set:op_1"] == stopped.reply
    assert list(states(stopped.state).values()) == ["running", "stopped", "stopped"]
    with pytest.raises(Refusal) as refused:
        change_sets.resume(stopped.state, steered(ResumeChangeSet), None)
    assert refused.value.code == "stopped_by_person"
    first = applied(stopped.state, IDS[0])
    assert called(first) == []
    resumed = change_sets.resume(first.state, steered(ResumeChangeSet, is_person=True), None)
    assert states(resumed.state) == {IDS[1]: "running", IDS[2]: "waiting"}
    assert {one.decided_by for one in resumed.state.operations} == {None}


@pytest.mark.parametrize("how", ["not sent", "given up"])
def test_one_that_the_platform_does_not_let_through_stops_the_others(how: str) -> None:
    if how == "given up":
        decision = operations.given_up(begun(), OperationGivenUp(IDS[0], NOON))
    else:
        away = OperationNotSent(
            operation_id=IDS[0], status=503, code="away", detail="Away.", retry_after=1, at=NOON
        )
        decision = operations.not_sent(begun(), away)
    assert set(states(decision.state).values()) == {"stopped"}
    assert (decision.resolve or {})["change-set:op_1"].state == "stopped"
    resumed = change_sets.resume(decision.state, steered(ResumeChangeSet), None)
    assert [one.operation_id for one in called(resumed)] == [IDS[0]]


def test_what_nobody_resumes_ends_after_a_day_and_what_was_stopped_anew_does_not() -> None:
    stopped = change_sets.stop(begun(), steered(StopChangeSet), None)
    (tell,) = stopped.effects
    assert isinstance(tell, Tell)
    assert tell.due_at == NOON + STOPPED_LIFE
    late = change_sets.expired(stopped.state, ChangeSetExpired("op_1", NOON + STOPPED_LIFE))
    assert states(late.state) == {IDS[0]: "running"}
    assert [one.code for one in late.state.ended] == ["stopped", "stopped"]
    again = change_sets.resume(stopped.state, steered(ResumeChangeSet), None).state
    later = NOON + timedelta(hours=1)
    again = change_sets.stop(again, steered(StopChangeSet, at=later), None).state
    early = change_sets.expired(again, ChangeSetExpired("op_1", NOON + STOPPED_LIFE))
    assert early.state == again


def test_what_was_planned_for_a_shop_that_the_store_left_is_over() -> None:
    left = operations.left_behind(begun(), NOON)
    assert (left.resolve or {})["change-set:op_1"].state == "over"
    # What was shown before its turn is not what there is of what was never done.
    ended = [one for one in left.records if isinstance(one, AgentOperation)]
    assert [(one.before, one.after) for one in ended] == [("{}", None)] * 3
    with pytest.raises(Refusal) as refused:
        change_sets.stop(EMPTY, steered(StopChangeSet), None)
    assert refused.value.code == "not_found"


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ({"applied"}, "applied"),
        ({"applied", "rejected"}, "partly"),
        ({"rejected", "unclear"}, "rejected"),
        ({"applied", "stopped", "running"}, "stopped"),
        ({"applied", "unknown"}, "running"),
    ],
)
def test_a_plan_is_as_far_as_its_changes(found: set[str], state: str) -> None:
    (one, *_) = begun().operations
    ends = {"applied", "rejected", "unclear"}
    rows: list[AgentOperation] = [
        replace(one, state=text, finished_at=NOON if text in ends else None) for text in found
    ]
    assert state_of(rows) == state
