"""Decisions about launches: one runner, nothing twice, and what stands says why."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tolsey.actors.organization.workflows.messages import ReleaseWorkflow
from tolsey.actors.refusals import Conflict
from tolsey.actors.store.compliance import forgetting
from tolsey.actors.store.compliance.messages import ForgetCheckpointNote, ForgetLaunch
from tolsey.actors.store.editing.messages import BeginOperation
from tolsey.actors.store.launch import launching, looking, results
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.keeping import launch_of
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ClaimPlace,
    ContinueLaunch,
    DecideCheckpoint,
    LaunchWriteEnded,
    PlaceClaimed,
    PlaceRefused,
    RunMilestone,
    StepFinished,
    StepOf,
    StepStopped,
    StepWrites,
    TakeStep,
)
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Perform, Tell
from tolsey.storage.records.commerce.agent_operation import OperationState
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.commerce.launches import LaunchMilestone, MilestoneState

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
AUDIT = StepOf(milestone="foundation.audit", run=1, attempt=1, step=0, launch_id="launch_1")
CONNECTION = Connection(
    store_id="store_1",
    shop_domain="ann.myshopify.com",
    status=ConnectionStatus.ACTIVE,
    connected_at=NOON,
)
EMPTY = StoreState(store_id="store_1", organization_id="org_1", connection=CONNECTION, facts={})


def begin(digest: str = "d") -> BeginLaunch:
    return BeginLaunch(
        launch_id="launch_1", user_id="usr_1", digest=digest, modules=(), facts=(), at=NOON
    )


def claimed(state: StoreState, at: datetime = NOON) -> Decision[StoreState, None]:
    until = at + timedelta(hours=1)
    return launching.claimed(state, PlaceClaimed(launch_id="launch_1", until=until, at=at))


def calls(decision: Decision[StoreState, Any], kind: type[Any]) -> list[Any]:
    found = [one.call for one in decision.effects if isinstance(one, Perform)]
    return [one for one in found if isinstance(one, kind)]


def one(state: StoreState, milestone: str = "foundation.audit") -> LaunchMilestone:
    return launch_of(state).milestones[milestone]


def running() -> StoreState:
    return claimed(launching.begin(EMPTY, begin(), {}).state).state


def test_a_launch_begins_once_and_asks_for_its_place() -> None:
    decision = launching.begin(EMPTY, begin(), {})
    assert decision.reply == "launch_1"
    assert len(calls(decision, ClaimPlace)) == 1
    assert calls(decision, TakeStep) == []
    again = launching.begin(decision.state, replace(begin(), launch_id="launch_2"), {})
    assert (again.reply, again.state, again.records) == ("launch_1", decision.state, ())
    with pytest.raises(Conflict):
        launching.begin(decision.state, begin("other"), {})


def test_what_the_plan_does_not_let_run_stays_queued_and_says_so() -> None:
    begun = launching.begin(EMPTY, begin(), {}).state
    wish = RunMilestone(milestone="foundation.audit", user_id="usr_1", is_forced=False, at=NOON)
    asked = launching.run(begun, wish)
    assert asked.reply == Parked("milestone:foundation.audit")
    no = PlaceRefused(launch_id="launch_1", reason="plan_limit", at=NOON)
    refused = launching.refused(asked.state, no)
    assert one(refused.state).state == MilestoneState.QUEUED
    told = (refused.resolve or {})["milestone:foundation.audit"]
    assert (told.result, told.reason) == ("queued", "plan_limit")
    # The next tick asks again.
    tick = looking.go_on(refused.state, ContinueLaunch(at=NOON, is_tick=True))
    assert len(calls(tick, ClaimPlace)) == 1


def test_a_milestone_is_never_under_way_twice() -> None:
    first = claimed(launching.begin(EMPTY, begin(), {}).state)
    assert [call.of for call in calls(first, TakeStep)] == [AUDIT]
    assert calls(claimed(first.state), TakeStep) == []
    tick = looking.go_on(first.state, ContinueLaunch(at=NOON, is_tick=True))
    assert calls(tick, TakeStep) == []
    wish = RunMilestone(milestone="foundation.audit", user_id="usr_1", is_forced=True, at=NOON)
    joined = launching.run(first.state, wish)
    assert (joined.reply, calls(joined, TakeStep)) == (Parked("milestone:foundation.audit"), [])


def test_a_result_of_an_attempt_before_changes_nothing() -> None:
    state = running()
    late = StepStopped(
        of=replace(AUDIT, attempt=2),
        stop=MilestoneStop(kind="permanent", reason="x", detail="X."),
        at=NOON,
    )
    assert results.stopped(state, late).state is state


def test_an_audit_lets_the_next_run_and_the_place_is_given_back_when_nothing_does() -> None:
    done = StepFinished(
        of=AUDIT,
        result='{"missingScopes": {}}',
        facts=(),
        modules=(),
        draft_hash=None,
        lacks_topics=True,
        at=NOON,
    )
    decision = results.finished(running(), done, {})
    assert sorted(call.of.milestone for call in calls(decision, TakeStep)) == [
        "brand.kit",
        "operations.location",
    ]
    state = decision.state
    for milestone in ("brand.kit", "operations.location"):
        stop = MilestoneStop(kind="permanent", reason="x", detail="X.")
        of = replace(AUDIT, milestone=milestone)
        decision = results.stopped(state, StepStopped(of=of, stop=stop, at=NOON))
        state = decision.state
    released = [each for each in decision.effects if isinstance(each, Tell)]
    assert [each.to.kind for each in released] == ["organization"]
    assert launch_of(state).head.claimed_until is None


def writing() -> StoreState:
    wishes = tuple(
        BeginOperation(
            operation_id=f"op_{n}",
            user_id="usr_1",
            client_id=LAUNCH_CLIENT,
            tool="foundation.audit",
            subject=f"market/{n}",
            digest="d",
            intent="sealed",
            at=NOON,
        )
        for n in (1, 2)
    )
    decision = results.writes(running(), StepWrites(of=AUDIT, writes=wishes, at=NOON))
    assert one(decision.state).waits_for == ("op_1", "op_2")
    return decision.state


def ended(number: int, state: OperationState, **more: Any) -> LaunchWriteEnded:
    return LaunchWriteEnded(
        milestone="foundation.audit",
        operation_id=f"op_{number}",
        subject=f"market/{number}",
        state=state,
        at=NOON,
        **more,
    )


def test_the_next_look_comes_once_all_changes_of_this_one_ended() -> None:
    first = results.write_ended(writing(), ended(1, OperationState.APPLIED, version="v1"))
    assert calls(first, TakeStep) == []
    again = results.write_ended(first.state, ended(1, OperationState.APPLIED, version="v1"))
    assert again.state is first.state
    last = results.write_ended(first.state, ended(2, OperationState.APPLIED, version="v2"))
    assert [call.of.step for call in calls(last, TakeStep)] == [1]
    assert one(last.state).written == '{"market/1":"v1","market/2":"v2"}'


@pytest.mark.parametrize(
    ("more", "state", "reason", "attempts"),
    [
        ({"state": OperationState.UNCLEAR}, "failed", "outcome_unknown", 1),
        (
            {"state": OperationState.REJECTED, "code": "commerce_rejected"},
            "failed",
            "commerce_rejected",
            1,
        ),
        (
            {
                "state": OperationState.REJECTED,
                "code": "commerce_rejected",
                "platform_code": "NOT_ENTITLED_TO_ACTIVATE_MARKET",
            },
            "blocked",
            "plan",
            1,
        ),
        (
            {"state": OperationState.NOT_SENT, "platform_status": 403, "scope": "write_markets"},
            "blocked",
            "scope_missing",
            1,
        ),
        (
            {"state": OperationState.NOT_SENT, "platform_status": 403},
            "blocked",
            "platform_exemption_required",
            1,
        ),
        (
            {"state": OperationState.NOT_SENT, "platform_status": 402},
            "blocked",
            "shop_unavailable",
            1,
        ),
        (
            {"state": OperationState.NOT_SENT, "code": "token_unavailable"},
            "blocked",
            "token_unavailable",
            1,
        ),
        (
            {
                "state": OperationState.NOT_SENT,
                "code": "commerce_unreachable",
                "is_throttled": True,
                "wait_seconds": 3,
            },
            "queued",
            "throttled",
            0,
        ),
        (
            {"state": OperationState.NOT_SENT, "code": "commerce_unreachable"},
            "queued",
            "commerce_unreachable",
            1,
        ),
        ({"state": OperationState.REJECTED, "code": "contended"}, "queued", "contended", 1),
    ],
)
def test_a_change_that_was_not_made_says_what_becomes_of_its_milestone(
    more: dict[str, Any], state: str, reason: str, attempts: int
) -> None:
    first = results.write_ended(writing(), ended(1, **more)).state
    after = one(results.write_ended(first, ended(2, OperationState.APPLIED, version="v")).state)
    assert (after.state, after.reason, after.attempts) == (state, reason, attempts)


def test_what_is_there_already_counts_as_made() -> None:
    covered = ended(
        1,
        OperationState.REJECTED,
        code="commerce_rejected",
        platform_code="DUPLICATE_REGION_MARKET",
    )
    first = results.write_ended(writing(), covered).state
    last = results.write_ended(first, ended(2, OperationState.APPLIED, version="v"))
    assert len(calls(last, TakeStep)) == 1
    assert '"market/1":null' in one(last.state).written


def test_a_store_that_went_to_another_shop_runs_nothing_until_it_is_back() -> None:
    stop = MilestoneStop(kind="retryable", reason="x", detail="X.")
    queued = results.stopped(running(), StepStopped(of=AUDIT, stop=stop, at=NOON)).state
    later = NOON + timedelta(minutes=20)
    away = replace(queued, connection=replace(CONNECTION, shop_domain="new.myshopify.com"))
    gone = looking.go_on(away, ContinueLaunch(at=later))
    assert calls(gone, TakeStep) == []
    assert launch_of(gone.state).head.reason == "other_shop"
    back = replace(gone.state, connection=CONNECTION)
    again = looking.go_on(back, ContinueLaunch(at=later))
    asked = calls(again, TakeStep) or calls(claimed(again.state, later), TakeStep)
    assert [call.of.attempt for call in asked] == [2]


OTHER_SHOP = "bob.myshopify.com"
LEFT = replace(CONNECTION, status=ConnectionStatus.REVOKED)


@pytest.mark.parametrize(
    ("worked_in", "connection", "goes"),
    [
        (CONNECTION.shop_domain, LEFT, True),
        (CONNECTION.shop_domain, replace(CONNECTION, shop_domain=OTHER_SHOP), True),
        (None, LEFT, True),
        (None, None, True),
        (None, replace(CONNECTION, shop_domain=OTHER_SHOP), False),
        (OTHER_SHOP, LEFT, False),
    ],
)
def test_a_launch_is_forgotten_with_the_shop_that_it_worked_in(
    worked_in: str | None, connection: Connection | None, goes: bool
) -> None:
    state = launching.begin(EMPTY, begin(), {}).state
    launch = launch_of(state).with_head(shop_domain=worked_in, changed_at=NOON)
    state = replace(state, launch=launch, connection=connection)
    decided = forgetting.forget_launch(state, ForgetLaunch(CONNECTION.shop_domain, NOON))
    assert decided.reply is goes
    assert (decided.state.launch is None) is goes
    told = [one.message for one in decided.effects if isinstance(one, Tell)]
    assert told == ([ReleaseWorkflow("launch_1", NOON)] if goes else [])


def test_a_step_that_ends_after_its_launch_was_forgotten_writes_nothing() -> None:
    state = claimed(launching.begin(EMPTY, begin(), {}).state).state
    forgotten = forgetting.forget_launch(state, ForgetLaunch(CONNECTION.shop_domain, NOON)).state
    ended = StepFinished(
        of=AUDIT,
        result='{"shop": "of Ann"}',
        facts=(),
        modules=(),
        draft_hash=None,
        lacks_topics=False,
        at=NOON,
    )
    decided = results.finished(forgotten, ended, {})
    assert (decided.state, decided.records, decided.effects) == (forgotten, (), ())


def test_a_note_is_forgotten_and_who_decided_stays() -> None:
    state = launching.begin(EMPTY, begin(), {}).state
    told = DecideCheckpoint(
        milestone="foundation.plan", action="done", user_id="usr_1", note="As Dora said.", at=NOON
    )
    state = launching.decide(state, told).state
    decided = forgetting.forget_note(state, ForgetCheckpointNote("foundation.plan", LATER))
    kept = launch_of(decided.state).milestones["foundation.plan"]
    assert (decided.reply, kept.note, kept.decided_by) == (True, None, "usr_1")
    again = forgetting.forget_note(decided.state, ForgetCheckpointNote("foundation.plan", LATER))
    assert again == Decision(decided.state, reply=False)


def test_a_step_of_a_launch_that_was_forgotten_says_nothing_of_the_one_begun_since() -> None:
    stop = MilestoneStop(kind="permanent", reason="why", detail="Because.")
    state = running()
    for launch_id, came in (("launch_0", "running"), ("", "failed"), ("launch_1", "failed")):
        of = replace(AUDIT, launch_id=launch_id)
        after = results.stopped(state, StepStopped(of=of, stop=stop, at=NOON)).state
        assert one(after).state == came, launch_id
