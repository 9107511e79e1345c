"""What a person decides of changes that agents only propose: money that goes back (rules/agents#refunds)."""

from dataclasses import replace
from typing import Final

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.editing.messages import DecideProposal, OperationView, ProposalExpired
from tolsey.actors.store.editing.operations import PROPOSAL_LIFE
from tolsey.actors.store.editing.queueing import (
    EVENT,
    end,
    start_next,
    under_way,
    view,
    waiter_of,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.journal import audit_record

EXPIRED: Final = "The proposal expired because no one approved it within a day. Nothing was changed; submit it again if needed."


def decide(
    state: StoreState, message: DecideProposal, kept: AgentOperation | None
) -> Decision[StoreState, OperationView]:
    """Carry a proposal out as it was shown, or end it."""
    operation = under_way(state, message.operation_id)
    if operation is None and kept is None:
        raise NotFound(
            "This proposal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    if operation is None or operation.state != OperationState.PROPOSED:
        raise Conflict(
            "This proposal was already decided or has expired. Check its status, and submit a"
            " new one if needed.",
            code="already_decided",
        )
    # What was shown is a day old at most (rules/agents#refunds).
    if message.at >= operation.created_at + PROPOSAL_LIFE:
        raise Conflict(EXPIRED, code="proposal_expired")
    decided = replace(operation, decided_by=message.user_id, decided_at=message.at)
    record = audit_record(
        f"{EVENT}.{'confirmed' if message.is_confirmed else 'declined'}",
        state.store_id,
        state.organization_id,
        message.user_id,
        operationId=operation.operation_id,
        tool=operation.tool,
        target=operation.subject,
    )
    if not message.is_confirmed:
        declined = replace(
            decided,
            state=OperationState.REJECTED,
            code="declined",
            detail="A member of the organization declined this proposal. Nothing was changed.",
        )
        ended = end(state, declined, message.at)
        reply = view(ended.state.ended[-1])
        return Decision(ended.state, reply=reply, records=(*ended.records, record))
    waiting = replace(decided, state=OperationState.WAITING)
    after, effects = start_next(state.with_operation(waiting))
    return Decision(after, reply=Parked(waiter_of(waiting)), records=(record,), effects=effects)


def expired(state: StoreState, message: ProposalExpired) -> Decision[StoreState, None]:
    """End a proposal that nobody decided."""
    operation = under_way(state, message.operation_id)
    if operation is None or operation.state != OperationState.PROPOSED:
        return Decision(state, reply=None)
    ended = replace(
        operation, state=OperationState.REJECTED, code="proposal_expired", detail=EXPIRED
    )
    return end(state, ended, message.at)
