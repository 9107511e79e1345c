"""What a launch may do next: pure rules, tried in thousands of orders."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.actors.refusals import Conflict, InvalidTransition
from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchMilestone,
    MilestoneState,
    StoreLaunch,
)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
AUTOS = frozenset(id for id, one in PLAYBOOK.milestones.items() if not one.is_human)
HUMAN = frozenset(PLAYBOOK.milestones) - AUTOS
BUILT = frozenset({"foundation.audit", "brand.kit", "brand.assets", "operations.location"})


def launch(**states: str) -> Launch:
    head = StoreLaunch(
        store_id="store_1",
        launch_id="launch_1",
        organization_id="org_1",
        playbook=PLAYBOOK.version,
        digest="d",
        begun_by="usr_1",
        begun_at=NOON,
        changed_at=NOON,
    )
    made = Launch(head=head, milestones=graph.begun("store_1", NOON))
    given = {name.replace("__", "."): MilestoneState(state) for name, state in states.items()}
    return made.with_milestone(
        *(replace(made.milestones[id], state=state) for id, state in given.items())
    )


def row(state: MilestoneState, **more: object) -> LaunchMilestone:
    one = launch().milestones["operations.location"]
    return replace(one, state=state, **more)  # type: ignore[arg-type]


def stop(kind: str, reason: str = "why", **more: object) -> MilestoneStop:
    return MilestoneStop(kind=kind, reason=reason, detail="Because.", **more)  # type: ignore[arg-type]


def test_a_launch_begins_with_what_depends_on_nothing() -> None:
    begun = graph.settled(launch(), BUILT, NOON)
    assert graph.dispatchable(begun, BUILT, NOON) == ("foundation.audit",)


def test_a_milestone_without_an_executor_stays_queued_and_nobody_waits_for_it() -> None:
    made = graph.settled(
        launch(foundation__audit="succeeded", brand__kit="succeeded", brand__approve="approved"),
        BUILT,
        NOON,
    )
    products, collections = (
        made.milestones[id] for id in ("catalog.products", "catalog.collections")
    )
    assert (products.state, collections.state) == (MilestoneState.QUEUED, MilestoneState.QUEUED)
    assert graph.unmet(made, "catalog.review", BUILT) == ()
    # With an executor it would be waited for.
    assert graph.unmet(made, "catalog.review", AUTOS) == ("catalog.products", "catalog.collections")


@given(st.data())
def test_whatever_happens_nothing_runs_before_what_it_depends_on(data: st.DataObject) -> None:
    built = data.draw(st.frozensets(st.sampled_from(sorted(AUTOS))))
    made, at = graph.settled(launch(), built, NOON), NOON
    for _ in range(data.draw(st.integers(0, 60))):
        at += timedelta(seconds=data.draw(st.integers(0, 1200)))
        ready = graph.dispatchable(made, built, at)
        running = [id for id, one in made.milestones.items() if one.state == MilestoneState.RUNNING]
        people = [
            id
            for id in sorted(HUMAN)
            if made.milestones[id].state == MilestoneState.PENDING
            and not graph.unmet(made, id, built)
        ]
        options = [*ready, *running, *people]
        if not options:
            break
        id = data.draw(st.sampled_from(options))
        one = made.milestones[id]
        if id in ready:
            assert not graph.unmet(made, id, built)
            after = graph.sent(one, at)
            assert after.attempts <= PLAYBOOK.milestones[id].most_attempts
        elif id in running:
            what = data.draw(st.sampled_from(["ok", "retryable", "throttled", "permanent"]))
            after = (
                graph.moved(one, "ok", at)
                if what == "ok"
                else graph.stopped(one, stop(what, wait_seconds=5.0), at)
            )
        else:
            after = graph.moved(one, "mark_done", at)
        made = graph.settled(made.with_milestone(after), built, at)
        assert graph.settled(made, built, at) == made
    for id, one in made.milestones.items():
        if one.state in {MilestoneState.RUNNING, MilestoneState.SUCCEEDED, MilestoneState.QUEUED}:
            assert not graph.unmet(made, id, built)
        assert id not in HUMAN or one.state in {MilestoneState.PENDING, MilestoneState.APPROVED}
        assert id in built or one.attempts == 0


@given(st.permutations(sorted(PLAYBOOK.milestones)))
def test_a_launch_that_everybody_works_on_ends(order: list[str]) -> None:
    made = graph.settled(launch(), AUTOS, NOON)
    for _ in PLAYBOOK.milestones:
        open_ = [id for id in order if made.milestones[id].state not in graph.DONE]
        id = next(id for id in open_ if not graph.unmet(made, id, AUTOS))
        one = made.milestones[id]
        after = (
            graph.moved(one, "mark_done", NOON)
            if id in HUMAN
            else graph.moved(graph.sent(one, NOON), "ok", NOON)
        )
        made = graph.settled(made.with_milestone(after), AUTOS, NOON)
    assert {one.state for one in made.milestones.values()} <= graph.DONE
    assert not graph.dispatchable(made, AUTOS, NOON)
    assert not graph.is_running(made)


def test_what_may_be_better_later_is_tried_five_times_and_then_fails() -> None:
    one = row(MilestoneState.QUEUED)
    for attempt in range(1, 6):
        one = graph.stopped(graph.sent(one, NOON), stop("retryable"), NOON)
        assert one.attempts == attempt
    assert (one.state, one.reason, one.finished_at) == (MilestoneState.FAILED, "why", NOON)


@given(st.integers(1, 30), st.floats(0, 1, exclude_max=True))
def test_waits_double_up_to_an_hour_and_are_spread(attempts: int, luck: float) -> None:
    wait = graph.backoff(attempts, luck)
    assert timedelta() <= wait <= min(timedelta(hours=1), timedelta(minutes=2 ** (attempts - 1)))


def test_what_the_platform_turns_away_for_its_pace_uses_no_attempt() -> None:
    one = row(MilestoneState.QUEUED)
    for _ in range(20):
        one = graph.stopped(
            graph.sent(one, NOON), stop("throttled", "throttled", wait_seconds=7.0), NOON
        )
    assert (one.state, one.attempts) == (MilestoneState.QUEUED, 0)
    assert one.not_before == NOON + timedelta(seconds=7)


@pytest.mark.parametrize(
    "reason",
    [
        "scope_missing",
        "platform_exemption_required",
        "token_unavailable",
        "shop_unavailable",
        "plan",
        "missing_credential",
    ],
)
def test_what_waits_for_the_world_is_blocked_by_its_name_and_not_failed(reason: str) -> None:
    one = graph.stopped(
        row(MilestoneState.RUNNING, attempts=1), stop("blocked", reason, scope="write_x"), NOON
    )
    assert (one.state, one.reason, one.scope) == (MilestoneState.BLOCKED, reason, "write_x")
    again = graph.run_again(one, NOON)
    assert (again.state, again.attempts, again.run) == (MilestoneState.QUEUED, 0, 2)


def test_what_a_person_has_to_mend_fails_at_once() -> None:
    one = graph.stopped(row(MilestoneState.RUNNING, attempts=1), stop("permanent"), NOON)
    assert one.state == MilestoneState.FAILED


def test_a_move_that_the_playbook_does_not_have_names_those_that_it_has() -> None:
    with pytest.raises(InvalidTransition) as refused:
        graph.moved(row(MilestoneState.RUNNING), "skip", NOON)
    assert "ok" in refused.value.fields["allowed"]


def test_an_approval_is_undone_until_something_that_stands_on_it_began() -> None:
    approved = graph.settled(
        launch(foundation__audit="succeeded", brand__kit="succeeded", brand__approve="approved"),
        BUILT,
        NOON,
    )
    undone = graph.undone(approved, "brand.approve", "undo", BUILT, NOON)
    assert undone.milestones["brand.approve"].is_held
    assert undone.milestones["brand.assets"].state == MilestoneState.PENDING
    # What nobody waited for goes back, too.
    assert undone.milestones["catalog.collections"].state == MilestoneState.PENDING
    begun = approved.with_milestone(graph.sent(approved.milestones["brand.assets"], NOON))
    with pytest.raises(Conflict) as refused:
        graph.undone(begun, "brand.approve", "undo", BUILT, NOON)
    assert refused.value.fields["milestones"] == ["brand.assets"]


def test_what_a_person_skipped_they_did_not_say_is_done() -> None:
    stood = launch(catalog__review="skipped", legal__review="approved", launch__unlock="approved")
    told = [
        replace(stood.milestones[id], decided_by="usr_1")
        for id in ("catalog.review", "legal.review")
    ]
    assert graph.marked(stood.with_milestone(*told)) == {"legal.review"}
