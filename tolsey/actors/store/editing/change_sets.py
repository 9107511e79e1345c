"""Decisions about changes that were planned together: begun in their order, one at a time, stopped and resumed.

Each is an operation as any other (`operations`); a plan is what bears its id, and is over when each of them has ended.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Literal

from tolsey.actors.refusals import Conflict, NotFound, Unavailable
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.messages import (
    BeginChangeSet,
    ChangeSetExpired,
    ChangeSetView,
    ResumeChangeSet,
    StopChangeSet,
)
from tolsey.actors.store.editing.queueing import (
    EVENT,
    Silence,
    end,
    known_as,
    of_plan,
    plan_view,
    plan_waiter,
    require_same,
    start_next,
)
from tolsey.actors.store.messages import store
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Tell
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.journal import AuditRecord, audit_record

MANY: Final = "change_many"
"""What agents call to have many changes planned together."""
MOST_CHANGES: Final = 100
"""How many changes one plan has (rules/agents#many-at-once)."""
MOST_PLANS: Final = 3
"""How many plans of a store may be on their way or stopped: each takes a place of those at the platform."""
STOPPED_LIFE: Final = timedelta(hours=24)
"""How long what was stopped may be resumed: what was shown is a day old at most (rules/agents#many-at-once)."""

STOPPED: Final = "stopped"
BY_PERSON: Final = (
    "A member of the organization stopped this bulk change. Only a member can resume it."
)
BY_AGENT: Final = "This change was stopped before it started. Resume the bulk change to apply it."
EXPIRED: Final = (
    "This change was stopped and not resumed within a day, so it wasn't applied. Plan it again."
)

PlanState = Literal["running", "stopped", "applied", "rejected", "partly"]
Answered = Decision[StoreState, ChangeSetView]


def begin(state: StoreState, message: BeginChangeSet, kept: AgentOperation | None) -> Answered:
    """Start what was planned together, or answer how far it is; `kept` is something of it that is on disk."""
    id = message.change_set
    known = known_as(state, id) or kept
    if known is not None:
        require_same(known, message.digest)
        told = plan_view(state, id, replayed=True)
        if told.state == "running":
            return Decision(state, reply=Parked(plan_waiter(id)))
        return Decision(state, reply=told, records=(_audit(state, known, "replayed"),))
    if message.is_repeat:
        raise Unavailable("The change couldn't be started. Try again.", retryAfter=1)
    # Money goes back on a person's word for each refund alone (rules/agents#refunds).
    if any(edits.wants_person(one.tool) for one in message.changes):
        raise Conflict(
            "This change needs approval from a member of the organization. Submit it as a"
            " proposal.",
            code="proposal_required",
        )
    if len({one.change_set for one in state.operations} - {None}) >= MOST_PLANS:
        raise Unavailable(
            "Too many bulk changes of this store are running or stopped. Resume one, or wait"
            " until one completes.",
            code="overloaded",
            retryAfter=5,
        )
    begun = [
        AgentOperation(
            store_id=state.store_id,
            operation_id=one.operation_id,
            user_id=message.user_id,
            client_id=message.client_id,
            tool=one.tool,
            subject=one.subject,
            digest=message.digest,
            created_at=message.at,
            state=OperationState.WAITING,
            intent=one.intent,
            before=one.before,
            after=one.after,
            change_set=id,
        )
        for one in message.changes[:MOST_CHANGES]
    ]
    after, effects = start_next(replace(state, operations=(*state.operations, *begun)))
    audit = _audit(state, begun[0], "begun", changes=len(begun))
    return Decision(after, reply=Parked(plan_waiter(id)), records=(audit,), effects=effects)


def stop(state: StoreState, message: StopChangeSet, kept: AgentOperation | None) -> Answered:
    """Let what has not begun wait until it is resumed; what is under way comes to its end."""
    found = _found(state, message.change_set, kept)
    waiting = [one for one in found if one.state == OperationState.WAITING]
    if not waiting:
        return Decision(state, reply=plan_view(state, message.change_set))
    after, expires = _stopped(
        state,
        waiting,
        code=STOPPED,
        detail=BY_PERSON if message.is_person else BY_AGENT,
        by=message.user_id if message.is_person else None,
        at=message.at,
    )
    told = plan_view(after, message.change_set)
    return Decision(
        after,
        reply=told,
        records=(_audit(state, waiting[0], "stopped", by=message.user_id),),
        effects=(expires,),
        resolve={plan_waiter(message.change_set): told},
    )


def resume(state: StoreState, message: ResumeChangeSet, kept: AgentOperation | None) -> Answered:
    """Let what was stopped go on, each only if the thing is still as its plan showed it."""
    found = _found(state, message.change_set, kept)
    stopped = [one for one in found if one.state == OperationState.STOPPED]
    # What a person of the store stopped, no agent sets going again (rules/agents#many-at-once).
    if not message.is_person and any(one.decided_by for one in stopped):
        raise Conflict(BY_PERSON, code="stopped_by_person")
    after = state
    for one in stopped:
        waiting = replace(
            one,
            state=OperationState.WAITING,
            code=None,
            detail=None,
            decided_by=None,
            decided_at=None,
        )
        after = after.with_operation(waiting)
    after, effects = start_next(after)
    records = [_audit(state, one, "resumed", by=message.user_id) for one in stopped[:1]]
    told = plan_view(after, message.change_set)
    return Decision(after, reply=told, records=records, effects=effects)


def halted(
    state: StoreState, operation: AgentOperation, *, code: str, detail: str, at: datetime
) -> Silence:
    """Stop a plan at a change that the platform did not let through for now, which has not been made."""
    id = operation.change_set or ""
    waiting = [one for one in of_plan(state, id) if one.state == OperationState.WAITING]
    after, expires = _stopped(
        state, [operation, *waiting], code=code, detail=detail, by=None, at=at
    )
    after, effects = start_next(after)
    return Decision(
        after,
        reply=None,
        records=(_audit(state, operation, "stopped", code=code),),
        effects=(expires, *effects),
        resolve={plan_waiter(id): plan_view(after, id)},
    )


def expired(state: StoreState, message: ChangeSetExpired) -> Silence:
    """End what was stopped a day ago and not resumed."""
    decision: Silence = Decision(state, reply=None)
    for one in of_plan(state, message.change_set):
        stopped_at = one.decided_at
        if one.state != OperationState.STOPPED or stopped_at is None:
            continue
        if stopped_at + STOPPED_LIFE > message.at:
            continue
        late = replace(one, state=OperationState.REJECTED, code=STOPPED, detail=EXPIRED)
        ended = end(decision.state, late, message.at)
        decision = Decision(
            ended.state,
            reply=None,
            records=(*decision.records, *ended.records),
            effects=(*decision.effects, *ended.effects),
            resolve={**(decision.resolve or {}), **(ended.resolve or {})},
        )
    return decision


def state_of(changes: Sequence[AgentOperation]) -> PlanState:
    """Say how far a plan is by all of its changes; `partly` is the end of one of which not all were made."""
    left = {one.state for one in changes if not one.is_over}
    if left:
        return "stopped" if OperationState.STOPPED in left else "running"
    made = {one.state == OperationState.APPLIED for one in changes}
    return "applied" if made == {True} else "partly" if True in made else "rejected"


def _found(
    state: StoreState, change_set: str, kept: AgentOperation | None
) -> Sequence[AgentOperation]:
    """Find what has not ended of a plan that there is."""
    found = of_plan(state, change_set)
    if not found and (kept is None or kept.change_set != change_set):
        raise NotFound(
            "This bulk change doesn't exist, or you don't have access to it. Check the link or"
            " the id."
        )
    return found


def _stopped(
    state: StoreState,
    changes: Sequence[AgentOperation],
    *,
    code: str,
    detail: str,
    by: str | None,
    at: datetime,
) -> tuple[StoreState, Tell]:
    """Stop changes, and have them end when nobody resumes them in time."""
    for one in changes:
        stopped = replace(
            one,
            state=OperationState.STOPPED,
            code=code,
            detail=detail,
            decided_by=by,
            decided_at=at,
        )
        state = state.with_operation(stopped)
    id = changes[0].change_set or ""
    until = at + STOPPED_LIFE
    key = f"change-set:{id}:{at.isoformat()}"
    return state, Tell(store(state.store_id), ChangeSetExpired(id, until), key=key, due_at=until)


def _audit(state: StoreState, one: AgentOperation, what: str, **more: object) -> AuditRecord:
    """Write down what became of a plan as a whole."""
    return audit_record(
        f"{EVENT}.{what}",
        state.store_id,
        state.organization_id,
        one.user_id,
        operationId=one.change_set,
        clientId=one.client_id,
        **more,
    )
