"""What is asked of an organization and takes calls to the outside: each once, answered at its end.

Whoever asks is told at once that it is under way, and may wait for its end; a repeat is told what became
of it. The calls go on whether anybody waits or not (rules/calls#calls).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, Refusal, Unavailable
from tolsey.runtime.decision import Decision, Parked
from tolsey.storage.records.runtime.operations import Operation, Stage

RECENT: Final = 16
"""How many that ended are remembered, longer than the commit of an end takes."""
MOST_OPEN: Final = 100
"""How many operations of an organization may be on their way."""


def wait(
    state: OrganizationState, message: AwaitOperation, kept: Operation | None
) -> Decision[OrganizationState, Operation]:
    """Let whoever asks wait for the end of an operation; `kept` is what is on disk of it."""
    operation = known(state, message.operation_id, kept)
    if operation is None:
        raise NotFound(
            "This operation doesn't exist, has expired, or belongs to another user. Check its id."
        )
    if operation.finished_at is None:
        return Decision(state, Parked(_name(operation.id)))
    return answer(state, operation)


def find(state: OrganizationState, id: str) -> Operation | None:
    """Find an operation that has not ended."""
    return next((one for one in state.operations if one.id == id), None)


def known(state: OrganizationState, id: str, kept: Operation | None) -> Operation | None:
    """Find an operation, ended or not; `kept` is what is on disk, which memory may be ahead of."""
    some = (*state.operations, *state.ended)
    return next((one for one in some if one.id == id), kept)


def about(state: OrganizationState, kind: str, subject: str) -> Operation | None:
    """Find the operation of a kind that is about one thing and has not ended."""
    same = (one for one in state.operations if (one.kind, one.subject) == (kind, subject))
    return next(same, None)


def answer(
    state: OrganizationState, operation: Operation
) -> Decision[OrganizationState, Operation]:
    """Answer how far an operation is. Raises what it was refused with."""
    if operation.code is not None:
        raise Refusal(operation.detail or "", status=operation.status, code=operation.code)
    return Decision(state, operation)


def begin(state: OrganizationState, operation: Operation) -> OrganizationState:
    """Go on with an operation. Raises Unavailable when too many are on their way."""
    if len(state.operations) >= MOST_OPEN:
        raise Unavailable(
            "Too many changes are in progress for this organization. Try again in a minute.",
            code="overloaded",
            retryAfter=60,
        )
    return replace(state, operations=(*state.operations, operation))


def keep(state: OrganizationState, operation: Operation) -> OrganizationState:
    """Go on with what is known of an operation by now."""
    return replace(
        state,
        operations=tuple(operation if one.id == operation.id else one for one in state.operations),
    )


def end(
    decision: Decision[OrganizationState, None],
    operation: Operation,
    at: datetime,
    *,
    result: Mapping[str, Any] | None = None,
    why: Refusal | None = None,
) -> Decision[OrganizationState, None]:
    """End an operation with what was decided, and answer who waits for it."""
    stage: Stage = "done"
    if why is not None:
        stage = "refused" if why.status < 500 else "failed"  # noqa: PLR2004 - RFC 9110: our side's faults
    ended = replace(
        operation,
        state=stage,
        result=operation.result if result is None else orjson.dumps(result).decode(),
        status=None if why is None else why.status,
        code=None if why is None else why.code,
        detail=None if why is None else why.detail,
        finished_at=at,
    )
    left = tuple(one for one in decision.state.operations if one.id != operation.id)
    return Decision(
        replace(decision.state, operations=left, ended=(*decision.state.ended, ended)[-RECENT:]),
        None,
        records=(*decision.records, ended),
        effects=decision.effects,
        resolve={_name(operation.id): why or ended},
    )


def _name(id: str) -> str:
    return f"operation:{id}"
