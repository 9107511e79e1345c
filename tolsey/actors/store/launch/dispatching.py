"""The one runner of a launch: what can run now is queued and sent, whoever set it off, and what came of it is told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.workflows.messages import ReleaseWorkflow
from tolsey.actors.store.launch import graph, probing, reporting
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.messages import (
    ClaimPlace,
    ContinueLaunch,
    MilestoneOutcome,
    RunnerResult,
    StepOf,
    TakeStep,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Perform, Tell
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchAttempt,
    LaunchMilestone,
    MilestoneState,
)

RENEW_BEFORE: Final = timedelta(minutes=30)
OTHER_SHOP: Final = "other_shop"

RESULTS: Final[Mapping[MilestoneState, RunnerResult]] = {
    MilestoneState.PENDING: "not_ready",
    MilestoneState.QUEUED: "queued",
    MilestoneState.RUNNING: "running",
    MilestoneState.SUCCEEDED: "succeeded",
    MilestoneState.APPROVED: "already_done",
    MilestoneState.FAILED: "failed",
    MilestoneState.BLOCKED: "blocked",
    MilestoneState.SKIPPED: "already_done",
}

Silence = Decision[StoreState, None]


def advanced(
    state: StoreState,
    launch: Launch,
    at: datetime,
    *,
    reply: Any,
    records: Sequence[Any] = (),
    effects: Sequence[Effect] = (),
    resolve: Mapping[str, Any] | None = None,
) -> Decision[StoreState, Any]:
    """Queue and send what can run now: the one runner of ticks, results and people."""
    launch = graph.settled(launch, BUILT, at)
    launch, more, attempts = _dispatched(state, launch, at)
    launch, mails = reporting.finished(launch, at)
    waits = {
        "has_work": any(
            launch.milestones[id].state in {MilestoneState.QUEUED, MilestoneState.BLOCKED}
            for id in BUILT
        ),
        "is_looking": probing.is_needed(launch, BUILT, at),
    }
    if waits != {"has_work": launch.head.has_work, "is_looking": launch.head.is_looking}:
        launch = launch.with_head(**waits, changed_at=at)
    if launch is not state.launch:
        state = replace(state, launch=launch)
    return Decision(
        state,
        reply=reply,
        records=(*records, *attempts),
        effects=(*effects, *more, *mails),
        resolve=resolve,
    )


def _dispatched(
    state: StoreState, launch: Launch, at: datetime
) -> tuple[Launch, Sequence[Effect], Sequence[LaunchAttempt]]:
    """Send what may be sent, ask for a place where there is none, and be reminded of what has to wait."""
    head, ready = launch.head, graph.dispatchable(launch, BUILT, at)
    effects = list(_reminder(launch, at))
    if not ready and not graph.is_running(launch):
        if head.claimed_until is None:
            return launch, effects, ()
        release = ReleaseWorkflow(head.launch_id, at)
        key = f"launch-release:{head.launch_id}:{at.isoformat()}"
        effects.append(Tell(organization(head.organization_id), release, key=key))
        return launch.with_head(claimed_until=None, changed_at=at), effects, ()
    domain = state.connection and state.connection.shop_domain
    if domain and head.shop_domain is None:
        launch = launch.with_head(shop_domain=domain, changed_at=at)
    elif domain and head.shop_domain != domain:
        # What was found and made in one shop says nothing of another.
        if head.reason != OTHER_SHOP:
            launch = launch.with_head(reason=OTHER_SHOP, changed_at=at)
        return launch, effects, ()
    until = head.claimed_until
    if until is None or until - at < RENEW_BEFORE:
        claim = ClaimPlace(
            store_id=state.store_id,
            organization_id=head.organization_id,
            launch_id=head.launch_id,
        )
        effects.append(Perform(claim, key=f"launch-claim:{head.launch_id}:{at.isoformat()}"))
    # No more workflows at once than the plan lets run (rules/limits#workflows).
    if until is None or until <= at:
        return launch, effects, ()
    if head.reason is not None:
        launch = launch.with_head(reason=None, changed_at=at)
    sent = [graph.sent(launch.milestones[id], at) for id in ready]
    launch = launch.with_milestone(*sent) if sent else launch
    effects += (step(launch, one) for one in sent)
    return launch, effects, [attempt(one) for one in sent]


def _reminder(launch: Launch, at: datetime) -> Sequence[Effect]:
    """Have the launch go on when the first wait of a milestone is over."""
    waits = [
        one.not_before
        for one in launch.milestones.values()
        if one.state == MilestoneState.QUEUED and one.not_before is not None
    ]
    later = [when for when in waits if when > at]
    if not later:
        return ()
    due_at = min(later)
    key = f"launch-due:{launch.head.launch_id}:{due_at.isoformat()}"
    go = ContinueLaunch(at=due_at)
    return (Tell(store(launch.head.store_id), go, key=key, due_at=due_at),)


def unblocked(state: StoreState, launch: Launch, at: datetime) -> Launch:
    """Queue again what is blocked by something that is gone, or may be (rules/launch#retries)."""
    again = [
        graph.run_again(one, at)
        for one in launch.milestones.values()
        if one.state == MilestoneState.BLOCKED and _is_gone(state.connection, one, at)
    ]
    return launch.with_milestone(*again) if again else launch


def _is_gone(connection: Connection | None, one: LaunchMilestone, at: datetime) -> bool:
    if one.reason == "token_unavailable":
        return (
            connection is not None
            and connection.status == ConnectionStatus.ACTIVE
            and connection.refused_at is None
        )
    if one.reason == "scope_missing" and connection is not None and connection.scopes:
        needed = PLAYBOOK.milestones[one.milestone].scopes
        return all(covers(connection.scopes, scope) for scope in (*needed, one.scope) if scope)
    # Only a try tells; once an hour.
    return one.not_before is None or one.not_before <= at


def step(launch: Launch, one: LaunchMilestone) -> Perform:
    """Make the call of the step that a milestone is at."""
    head = launch.head
    of = StepOf(
        milestone=one.milestone,
        run=one.run,
        attempt=one.attempts,
        step=one.step,
        launch_id=head.launch_id,
    )
    call = TakeStep(
        store_id=head.store_id,
        organization_id=head.organization_id,
        launch_id=head.launch_id,
        of=of,
    )
    # An attempt that is given back is made again at a later moment.
    began = one.started_at.isoformat() if one.started_at else ""
    key = (
        f"launch-step:{head.launch_id}:{one.milestone}:{one.run}:{one.attempts}:{one.step}:{began}"
    )
    return Perform(call, key=key)


def attempt(one: LaunchMilestone, outcome: str | None = None) -> LaunchAttempt:
    """Write down the attempt that a milestone is at."""
    return LaunchAttempt(
        store_id=one.store_id,
        milestone=one.milestone,
        run=one.run,
        attempt=max(1, one.attempts),
        started_at=one.started_at or one.changed_at,
        changed_at=one.changed_at,
        outcome=outcome,
        reason=one.reason if outcome else None,
        detail=one.detail if outcome else None,
    )


def outcome(
    launch: Launch,
    one: LaunchMilestone,
    result: RunnerResult | None = None,
    detail: str | None = None,
) -> MilestoneOutcome:
    """Say what a runner says of a milestone; of one that only waits, what the launch waits for."""
    waits = one.state == MilestoneState.QUEUED and one.milestone in BUILT
    return MilestoneOutcome(
        result=result or RESULTS[one.state],
        milestone=one.milestone,
        state=one.state,
        reason=one.reason or (launch.head.reason if waits else None),
        detail=detail or one.detail,
        scope=one.scope,
    )


def waiter(milestone: str) -> str:
    """Name what those wait for who want a milestone run."""
    return f"milestone:{milestone}"
