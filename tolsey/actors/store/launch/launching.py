"""Decisions about a launch: begun once, run by one runner whoever asks, and decided by people where only they can."""

from dataclasses import replace
from typing import Any, Final

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.dispatching import Silence, advanced, outcome, waiter
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.keeping import (
    audit,
    launch_of,
    modules_of,
    remembered,
    told_password,
)
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ClaimPlace,
    DecideCheckpoint,
    MilestoneOutcome,
    PlaceClaimed,
    PlaceRefused,
    RunMilestone,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchMilestone,
    MilestoneState,
    PlatformActivity,
    StoreLaunch,
)

PLAN_LIMIT: Final = "plan_limit"
BRAND_APPROVAL: Final = "brand.approve"
EVENTS: Final = {"done": "mark_done", "undo": "undo", "skip": "skip", "unskip": "unskip"}

Answer = Decision[StoreState, MilestoneOutcome]


def begin(state: StoreState, message: BeginLaunch, facts: Facts) -> Decision[StoreState, str]:
    """Begin the launch of a store; the same once more answers the same."""
    if state.launch is not None:
        if state.launch.head.digest != message.digest:
            raise Conflict(
                f"This store's launch was already started with other settings. Fetch it from /api/wizard/store/{state.store_id}.",
                code="launch_exists",
                launchId=state.launch.head.launch_id,
            )
        known = told_password(state.launch, message)
        return Decision(replace(state, launch=known), reply=known.head.launch_id)
    if state.organization_id is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    head = StoreLaunch(
        store_id=state.store_id,
        launch_id=message.launch_id,
        organization_id=state.organization_id,
        playbook=PLAYBOOK.version,
        digest=message.digest,
        begun_by=message.user_id,
        begun_at=message.at,
        changed_at=message.at,
        storefront_password=message.storefront_password,
    )
    launch = Launch(head=head, milestones=graph.begun(state.store_id, message.at))
    state, told = remembered(state, launch, message.facts, facts, message.at)
    records = (
        *told,
        *modules_of(launch, message.modules, message.at),
        *(
            PlatformActivity(
                launch_id=head.launch_id,
                milestone=one.id,
                store_id=state.store_id,
                organization_id=head.organization_id,
                section=one.section,
                title=one.title,
                created_at=message.at,
            )
            for one in PLAYBOOK.milestones.values()
        ),
        audit(state, "begun", message.user_id, launchId=head.launch_id),
    )
    return advanced(state, launch, message.at, reply=head.launch_id, records=records)


def run(state: StoreState, message: RunMilestone) -> Answer:
    """Run a milestone because somebody wants it now, by the same runner as a tick does."""
    launch = launch_of(state)
    one = _found(launch, message.milestone)
    if PLAYBOOK.milestones[one.milestone].is_human:
        # A person's step is never run (rules/launch#milestones).
        detail = "This milestone is done by you, not automatically. Mark it as done when you have completed it."
        return Decision(state, reply=outcome(launch, one, "human_required", detail))
    if one.state == MilestoneState.RUNNING:
        return Decision(state, reply=Parked(waiter(one.milestone)))
    if one.milestone not in BUILT:
        detail = "This release can't run the milestone yet. No other milestone depends on it."
        return Decision(state, reply=outcome(launch, one, "no_executor", detail))
    if missing := graph.unmet(launch, one.milestone, BUILT):
        detail = f"This milestone depends on {', '.join(missing)}. Complete that first."
        return Decision(state, reply=outcome(launch, one, "not_ready", detail))
    if one.state == MilestoneState.SUCCEEDED and not message.is_forced:
        return Decision(state, reply=outcome(launch, one, "already_done"))
    if one.state == MilestoneState.QUEUED:
        again = replace(one, not_before=None, changed_at=message.at)
    else:
        again = graph.run_again(one, message.at)
    audited = audit(
        state, "run", message.user_id, milestone=one.milestone, isForced=message.is_forced
    )
    launch = launch.with_milestone(again)
    decided = advanced(state, launch, message.at, records=(audited,), reply=None)
    return _answered(decided, one.milestone)


def _answered(decided: Decision[StoreState, Any], milestone: str) -> Answer:
    """Have the asker wait while something is under way that will tell."""
    launch = launch_of(decided.state)
    one = launch.milestones[milestone]
    asks = any(
        isinstance(each, Perform) and isinstance(each.call, ClaimPlace) for each in decided.effects
    )
    waits = one.state == MilestoneState.RUNNING or (one.state == MilestoneState.QUEUED and asks)
    decided.reply = Parked(waiter(milestone)) if waits else outcome(launch, one)
    return decided


def decide(state: StoreState, message: DecideCheckpoint) -> Answer:
    """Do what a person decided about a milestone, with their name, the time and their note."""
    launch = launch_of(state)
    one = _found(launch, message.milestone)
    definition = PLAYBOOK.milestones[one.milestone]
    if message.action in {"done", "undo"} and not definition.is_human:
        raise Conflict(
            "This milestone runs automatically and can't be marked as done. Run it, or skip it"
            " where that is allowed.",
            code="not_a_checkpoint",
        )
    # Only what the playbook says can be left out (rules/launch#checkpoints).
    if message.action == "skip" and not definition.is_skippable:
        raise Conflict(
            "This milestone can't be skipped. Run it or mark it as done.", code="not_skippable"
        )
    if message.action in {"undo", "unskip"}:
        launch = graph.undone(launch, one.milestone, EVENTS[message.action], BUILT, message.at)
    else:
        launch = _decided(launch, one, message)
    if one.milestone == BRAND_APPROVAL:
        approved = launch.head.draft_hash if message.action == "done" else None
        launch = launch.with_head(approved_hash=approved, changed_at=message.at)
    audited = audit(state, f"checkpoint.{message.action}", message.user_id, milestone=one.milestone)
    decided = advanced(state, launch, message.at, records=(audited,), reply=None)
    after = launch_of(decided.state)
    decided.reply = outcome(after, after.milestones[one.milestone])
    return decided


def _decided(launch: Launch, one: LaunchMilestone, message: DecideCheckpoint) -> Launch:
    """Mark a milestone done, or skip it."""
    checkpoint = PLAYBOOK.milestones[one.milestone].checkpoint
    missing = graph.unmet(launch, one.milestone, BUILT)
    is_early = checkpoint is not None and not checkpoint.before_deps and bool(missing)
    # What stands on others is not done before them (rules/launch#checkpoints).
    if message.action == "done" and is_early:
        raise Conflict(
            f"This milestone depends on {', '.join(missing)}. Complete that first.",
            code="not_ready",
            milestones=list(missing),
        )
    decided = graph.moved(
        one,
        EVENTS[message.action],
        message.at,
        decided_by=message.user_id,
        note=message.note,
        finished_at=message.at,
        reason=None,
        detail=None,
        scope=None,
        not_before=None,
        is_held=False,
    )
    return launch.with_milestone(decided)


def claimed(state: StoreState, message: PlaceClaimed) -> Silence:
    """Run what waits for the launch's place among the workflows."""
    launch = state.launch
    if launch is None or launch.head.launch_id != message.launch_id:
        return Decision(state, reply=None)
    launch = launch.with_head(claimed_until=message.until, reason=None, changed_at=message.at)
    return advanced(state, launch, message.at, reply=None)


def refused(state: StoreState, message: PlaceRefused) -> Silence:
    """Leave everything queued, and say why (rules/launch#plans); the next tick asks again."""
    launch = state.launch
    if launch is None or launch.head.launch_id != message.launch_id:
        return Decision(state, reply=None)
    launch = launch.with_head(claimed_until=None, reason=message.reason, changed_at=message.at)
    waiting = (one for one in launch.milestones.values() if one.state == MilestoneState.QUEUED)
    resolve = {waiter(one.milestone): outcome(launch, one) for one in waiting}
    return Decision(replace(state, launch=launch), reply=None, resolve=resolve)


def _found(launch: Launch, milestone: str) -> LaunchMilestone:
    if milestone not in launch.milestones:
        raise NotFound(
            "The playbook has no milestone with this name. Check the names in the launch overview."
        )
    return launch.milestones[milestone]
