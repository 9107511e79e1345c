"""Decisions about a launch: begun once, run by one runner whoever asks, and decided by people where only they can."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.workflows.messages import ReleaseWorkflow
from tolsey.actors.refusals import Conflict, NotFound, Refusal
from tolsey.actors.store.launch import graph, probing, reporting
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ClaimPlace,
    ContinueLaunch,
    DecideCheckpoint,
    MilestoneOutcome,
    PlaceClaimed,
    PlaceRefused,
    RunMilestone,
    RunnerResult,
    StepOf,
    TakeStep,
    ToldFact,
    ToldModule,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.memory import remembering
from tolsey.actors.store.memory.messages import KeepFact
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.messages import store
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Parked, Perform, Tell
from tolsey.storage.records.commerce.connection import Connection, ConnectionStatus
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchAttempt,
    LaunchMilestone,
    MilestoneState,
    PlatformActivity,
    StoreContextModule,
    StoreLaunch,
)
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.memory import MemorySource

RENEW_BEFORE: Final = timedelta(minutes=30)
PLAN_LIMIT: Final = "plan_limit"
OTHER_SHOP: Final = "other_shop"
BRAND_APPROVAL: Final = "brand.approve"
SYSTEM: Final = "system"

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
EVENTS: Final = {"done": "mark_done", "undo": "undo", "skip": "skip", "unskip": "unskip"}

Silence = Decision[StoreState, None]
Answer = Decision[StoreState, MilestoneOutcome]


def begin(state: StoreState, message: BeginLaunch, facts: Facts) -> Decision[StoreState, str]:
    """Begin the launch of a store; the same once more answers the same."""
    if state.launch is not None:
        if state.launch.head.digest != message.digest:
            raise Conflict(
                "The launch of this store was begun with something else. Look at it in"
                f" /api/wizard/store/{state.store_id}.",
                code="launch_exists",
                launchId=state.launch.head.launch_id,
            )
        return Decision(state, reply=state.launch.head.launch_id)
    if state.organization_id is None:
        raise NotFound("There is no such store.")
    head = StoreLaunch(
        store_id=state.store_id,
        launch_id=message.launch_id,
        organization_id=state.organization_id,
        playbook=PLAYBOOK.version,
        digest=message.digest,
        begun_by=message.user_id,
        begun_at=message.at,
        changed_at=message.at,
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
        detail = "A person does this: mark it done when it is."
        return Decision(state, reply=outcome(launch, one, "human_required", detail))
    if one.state == MilestoneState.RUNNING:
        return Decision(state, reply=Parked(waiter(one.milestone)))
    if one.milestone not in BUILT:
        detail = "This version cannot carry it out. Nothing waits for it."
        return Decision(state, reply=outcome(launch, one, "no_executor", detail))
    if missing := graph.unmet(launch, one.milestone, BUILT):
        detail = f"It waits for {', '.join(missing)}."
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
            "This runs by itself: nobody marks it done. Run it, or skip it where it can be.",
            code="not_a_checkpoint",
        )
    # Only what the playbook says can be left out (rules/launch#checkpoints).
    if message.action == "skip" and not definition.is_skippable:
        raise Conflict("This milestone cannot be skipped.", code="not_skippable")
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
            f"{', '.join(missing)} comes first.", code="not_ready", milestones=list(missing)
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
    if not graph.is_at_work(launch, BUILT, at):
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


def remembered(
    state: StoreState, launch: Launch, told: Sequence[ToldFact], facts: Facts, at: datetime
) -> tuple[StoreState, Sequence[Any]]:
    """Write facts into the store's memory; what a merchant told stays as they told it (rules/shops#memory)."""
    records = list[Any]()
    for one in told:
        keep = KeepFact(
            fact_id=one.fact_id,
            key=one.key,
            value=one.value,
            source=MemorySource.LAUNCH,
            user_id=launch.head.begun_by or SYSTEM,
            at=at,
        )
        try:
            kept = remembering.keep_fact(state, keep, facts)
        except Refusal:
            continue
        state, facts = kept.state, kept.state.facts or facts
        records += kept.records
    return state, records


def modules_of(
    launch: Launch, told: Sequence[ToldModule], at: datetime
) -> Sequence[StoreContextModule]:
    """Write down modules of the store's context."""
    return [
        StoreContextModule(
            store_id=launch.head.store_id,
            organization_id=launch.head.organization_id,
            module=one.name,
            value=one.value,
            changed_at=at,
        )
        for one in told
    ]


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


def audit(state: StoreState, event: str, who: str, **metadata: Any) -> Any:
    """Write down what somebody did with a launch."""
    return audit_record(f"launch.{event}", state.store_id, state.organization_id, who, **metadata)


def launch_of(state: StoreState) -> Launch:
    """Give the launch of a store, or refuse."""
    if state.launch is None:
        raise not_begun()
    return state.launch


def not_begun() -> NotFound:
    """Say that a store has no launch yet."""
    return NotFound(
        "This store's launch was not begun: POST /api/wizard/store/launch begins it.",
        code="launch_not_begun",
    )


def _found(launch: Launch, milestone: str) -> LaunchMilestone:
    if milestone not in launch.milestones:
        raise NotFound("The playbook has no such milestone.")
    return launch.milestones[milestone]
