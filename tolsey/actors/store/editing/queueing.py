"""Whose turn it is: operations begin one after the other for each thing and each plan, and end with an answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from tolsey.actors.refusals import Refusal, Unprocessable
from tolsey.actors.store.editing.messages import CarryOut, ChangeSetView, OperationView, SendEdit
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT, tell_launch
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.journal import AuditRecord, audit_record

EVENT: Final = "agent.write"
AT_ONCE: Final = 8
"""How many of them call the platform at the same time, so that no store takes all the calls."""
NOT_BEGUN: Final = frozenset(
    {OperationState.WAITING, OperationState.PROPOSED, OperationState.STOPPED}
)

Silence = Decision[StoreState, None]


def view(operation: AgentOperation, *, replayed: bool = False) -> OperationView:
    """Show an operation to whoever asked for it."""
    return OperationView(
        operation_id=operation.operation_id,
        tool=operation.tool,
        subject=operation.subject,
        state=operation.state,
        created_at=operation.created_at,
        before=operation.before,
        after=operation.after,
        version=operation.version,
        code=operation.code,
        detail=operation.detail,
        finished_at=operation.finished_at,
        replayed=replayed,
    )


def end(
    state: StoreState,
    operation: AgentOperation,
    at: datetime,
    refusal: Refusal | None = None,
    **said: Any,
) -> Silence:
    """End an operation, answer who waits for it or its plan, and let the next of the same thing begin.

    What the platform `said` of it beside that goes to the launch, where it is one of its.
    """
    # Nothing is after what was not made: what its plan showed is not told as what there is.
    made = operation.after if operation.state == OperationState.APPLIED else None
    ended = replace(operation, intent=None, finished_at=at, after=made)
    after, effects = start_next(state.with_ended(ended))
    resolve = {waiter_of(ended): refusal or view(ended), **plan_over(after, ended)}
    return Decision(
        after,
        reply=None,
        records=(ended, audit_of(state, ended)),
        effects=(*effects, *tell_launch(ended, at, refusal, **said)),
        resolve=resolve,
    )


def start_next(state: StoreState) -> tuple[StoreState, tuple[Perform, ...]]:
    """Start the oldest that wait, one for each thing and each plan, and only so many for the store.

    One whose answer was lost is looked for later, and keeps the others of its plan waiting no more.
    """
    begun = [one for one in state.operations if one.state not in NOT_BEGUN]
    called = [one for one in begun if one.state != OperationState.UNKNOWN]
    taken = {one.subject for one in begun} | {one.change_set for one in called}
    free = AT_ONCE - len(called)
    calls: list[Perform] = []
    for one in state.operations:
        if len(calls) >= free:
            break
        own = {one.subject, one.change_set} - {None}
        if one.state == OperationState.WAITING and own.isdisjoint(taken):
            taken |= own
            if _is_planned(one):
                started = replace(one, state=OperationState.SENT, sends=one.sends + 1)
                calls.append(send(state, started))
            else:
                started = replace(one, state=OperationState.RUNNING)
                calls.append(_carry_out(state, started))
            state = state.with_operation(started)
    return state, tuple(calls)


def _is_planned(operation: AgentOperation) -> bool:
    """Tell whether it comes with what is sent for it: a launch's, made of what it looked at last.

    What a plan of an agent's shows is another look at the shop old, and planned anew at its turn.
    """
    return operation.client_id == LAUNCH_CLIENT and operation.before is not None


def _carry_out(state: StoreState, operation: AgentOperation) -> Perform:
    call = CarryOut(
        store_id=state.store_id,
        operation_id=operation.operation_id,
        organization_id=state.organization_id,
    )
    return Perform(call, key=f"carry-out:{operation.operation_id}")


def send(state: StoreState, operation: AgentOperation) -> Perform:
    """Send an operation as it is planned; its thing is read once more right before."""
    call = SendEdit(
        store_id=state.store_id,
        operation_id=operation.operation_id,
        sends=operation.sends,
        organization_id=state.organization_id,
    )
    return Perform(call, key=f"send:{operation.operation_id}:{operation.sends}")


def under_way(state: StoreState, operation_id: str) -> AgentOperation | None:
    """Find an operation that has not ended."""
    return next((one for one in state.operations if one.operation_id == operation_id), None)


def known_as(state: StoreState, operation_id: str) -> AgentOperation | None:
    """Find in memory what an id stands for: the newest of that id, since a key may try again."""
    some = (*state.ended, *state.operations)
    ids = ((one, {one.operation_id, one.change_set}) for one in reversed(some))
    return next((one for one, own in ids if operation_id in own), None)


def require_same(known: AgentOperation, digest: str) -> None:
    """Refuse an id that was used for something else."""
    if known.digest != digest:
        raise Unprocessable(
            "This idempotency_key was already used with different arguments. Use a new key for"
            " a new call.",
            code="idempotency_key_reused",
        )


def of_plan(state: StoreState, change_set: str) -> tuple[AgentOperation, ...]:
    """Find the changes of a plan that have not ended."""
    return tuple(one for one in state.operations if one.change_set == change_set)


def plan_view(state: StoreState, change_set: str, *, replayed: bool = False) -> ChangeSetView:
    """Show how far a plan is, of which there is something."""
    found = of_plan(state, change_set)
    is_stopped = any(one.state == OperationState.STOPPED for one in found)
    told = "over" if not found else "stopped" if is_stopped else "running"
    return ChangeSetView(change_set=change_set, state=told, replayed=replayed)


def plan_over(state: StoreState, ended: AgentOperation) -> Mapping[str, ChangeSetView]:
    """Answer who waits for the plan of what ended last; nobody while there is more of it."""
    if ended.change_set is None or of_plan(state, ended.change_set):
        return {}
    return {plan_waiter(ended.change_set): plan_view(state, ended.change_set)}


def plan_waiter(change_set: str) -> str:
    """Name what those wait for who asked for a plan."""
    return f"change-set:{change_set}"


def waiter_of(operation: AgentOperation) -> str:
    """Name what those wait for who asked for it."""
    return f"operation:{operation.operation_id}"


def audit_of(state: StoreState, operation: AgentOperation, event: str = EVENT) -> AuditRecord:
    """Write down what became of it, for the audit log."""
    return audit_record(
        event,
        state.store_id,
        state.organization_id,
        operation.user_id,
        operationId=operation.operation_id,
        clientId=operation.client_id,
        tool=operation.tool,
        target=operation.subject,
        status=str(operation.state),
        version=operation.version,
        code=operation.code,
    )
