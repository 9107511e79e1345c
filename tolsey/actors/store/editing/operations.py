"""Decisions about agents' operations: each once, those of one thing one after the other.

Three calls carry one out: it is planned from what the shop is (`CarryOut`), kept with what it was before
and what is to be sent, and sent (`SendEdit`). Whoever finds it sent after a crash looks at the shop instead of
sending it again (rules/agents#tools), and again later while nobody can tell (`CarryOut` with a look).
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.actors.refusals import Conflict, Refusal, Unavailable
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.change_sets import halted
from tolsey.actors.store.editing.messages import (
    BeginOperation,
    CarryOut,
    OperationApplied,
    OperationGivenUp,
    OperationNotSent,
    OperationOvertaken,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    OperationView,
    ProposalExpired,
    RecordOperation,
)
from tolsey.actors.store.editing.queueing import (
    EVENT,
    Silence,
    audit_of,
    end,
    known_as,
    plan_over,
    require_same,
    send,
    start_next,
    under_way,
    view,
    waiter_of,
)
from tolsey.actors.store.launch.stops import tell_launch
from tolsey.actors.store.messages import store
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Parked, Perform, Tell
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.journal import AuditRecord

MOST_OPEN: Final = 100
"""How many operations of a store may be on their way, beside what was planned together."""
TRIES: Final = 5
"""How often in a row a change is planned anew because the shop moved on meanwhile."""
LOOKS: Final = 4
"""How often the shop is read for an operation whose answer was lost."""
LOOK_AFTER: Final = (timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=5))
"""Waits before the second look, the third and the fourth."""

MOST_PROPOSED: Final = 50
"""How many of a store may wait for a person, beside those on their way."""
PROPOSAL_LIFE: Final = timedelta(hours=24)
"""How long a proposal waits for a person (rules/agents#refunds)."""

NOT_DONE_ELSEWHERE: Final = "The store was connected to another shop before the change started, so it wasn't applied. Plan it again."
SENT_ELSEWHERE: Final = (
    "The store was connected to another shop before Shopify responded. Check in the former shop"
    " whether the change was applied."
)

Shown = Decision[StoreState, OperationView]


def begin(state: StoreState, message: BeginOperation, kept: AgentOperation | None) -> Shown:
    """Start an operation, or answer what became of it; `kept` is what is on disk of it."""
    known = known_as(state, message.operation_id) or kept
    if known is not None:
        require_same(known, message.digest)
        if known.state in {OperationState.UNKNOWN, OperationState.PROPOSED}:
            return _replay(state, known)
        if not known.is_over:
            return Decision(state, reply=Parked(waiter_of(known)))
        if known.state != OperationState.NOT_SENT:
            return _replay(state, known)
    # Whatever asks for it, money goes back on a person's word alone (rules/agents#refunds).
    if edits.wants_person(message.tool) and not (message.is_repeat or message.is_proposal):
        raise Conflict(
            "This change needs approval from a member of the organization. Submit it as a"
            " proposal.",
            code="proposal_required",
        )
    if message.is_repeat:
        raise Unavailable("The change couldn't be started. Try again.", retryAfter=1)
    if message.is_proposal:
        return _proposed(state, message, sends=0 if known is None else known.sends)
    alone = [one for one in state.operations if one.change_set is None]
    if sum(one.state != OperationState.PROPOSED for one in alone) >= MOST_OPEN:
        raise Unavailable(
            "Too many changes of this store are in progress. Try again in a minute.",
            code="overloaded",
            retryAfter=5,
        )
    operation = _wished(
        state,
        message,
        state=OperationState.WAITING,
        intent=message.intent,
        before=message.before,
        sends=0 if known is None else known.sends,
    )
    after, effects = start_next(state.with_operation(operation))
    return Decision(after, reply=Parked(waiter_of(operation)), effects=effects)


def _proposed(state: StoreState, message: BeginOperation, sends: int) -> Shown:
    """Keep it until a person decides, or nobody does in time."""
    waiting = [one for one in state.operations if one.state == OperationState.PROPOSED]
    if len(waiting) >= MOST_PROPOSED:
        raise Conflict(
            "Too many proposals for this store are waiting for approval. Approve or decline"
            " some first.",
            code="too_many_proposals",
        )
    proposed = _wished(
        state,
        message,
        state=OperationState.PROPOSED,
        intent=message.intent,
        before=message.before,
        after=message.after,
        sends=sends,
    )
    expires = Tell(
        store(state.store_id),
        ProposalExpired(proposed.operation_id, message.at + PROPOSAL_LIFE),
        key=f"proposal:{proposed.operation_id}",
        due_at=message.at + PROPOSAL_LIFE,
    )
    return Decision(
        state.with_operation(proposed),
        reply=view(proposed),
        records=(audit_of(state, proposed, f"{EVENT}.proposed"),),
        effects=(expires,),
    )


def record(state: StoreState, message: RecordOperation, kept: AgentOperation | None) -> Shown:
    """Keep what was done, so that the same key is answered the same."""
    known = known_as(state, message.operation_id) or kept
    if known is not None:
        require_same(known, message.digest)
        return _replay(state, known)
    done = _wished(
        state,
        message,
        state=OperationState.APPLIED,
        before=message.before,
        after=message.after,
        finished_at=message.at,
    )
    records = (done, audit_of(state, done))
    return Decision(state.with_ended(done), reply=view(done), records=records)


def _wished(
    store: StoreState, message: BeginOperation | RecordOperation, **rest: Any
) -> AgentOperation:
    """Write down who wished for what, under which key."""
    return AgentOperation(
        store_id=store.store_id,
        operation_id=message.operation_id,
        user_id=message.user_id,
        client_id=message.client_id,
        tool=message.tool,
        subject=message.subject,
        digest=message.digest,
        created_at=message.at,
        **rest,
    )


def sending(state: StoreState, message: OperationSending) -> Decision[StoreState, bool]:
    """Put on disk that it may reach the platform from now on, and send it."""
    operation = under_way(state, message.operation_id)
    if operation is None or operation.sends != message.sends:
        return Decision(state, reply=False)
    sent = replace(
        operation,
        state=OperationState.SENT,
        sends=operation.sends + 1,
        before=message.before,
        intent=message.intent or operation.intent,
    )
    # A process of the release before sends it itself.
    if message.intent is None:
        return Decision(state.with_operation(sent), reply=True)
    return Decision(state.with_operation(sent), reply=True, effects=(send(state, sent),))


def overtaken(state: StoreState, message: OperationOvertaken) -> Silence:
    """Plan it anew from what the shop is now; where others always come first, say so."""
    operation = under_way(state, message.operation_id)
    if operation is None or operation.sends != message.sends:
        return Decision(state, reply=None)
    if operation.sends % TRIES == 0:
        contended = replace(
            operation,
            state=OperationState.REJECTED,
            code="contended",
            detail="The item changed during every attempt. Fetch it again and retry.",
        )
        return end(state, contended, message.at)
    again = replace(operation, state=OperationState.RUNNING)
    call = CarryOut(
        store_id=state.store_id,
        operation_id=again.operation_id,
        organization_id=state.organization_id,
    )
    plan = Perform(call, key=f"plan:{again.operation_id}:{again.sends}")
    return Decision(state.with_operation(again), reply=None, effects=(plan,))


def given_up(state: StoreState, message: OperationGivenUp) -> Silence:
    """Keep nobody waiting for what a call never found out."""
    operation = under_way(state, message.operation_id)
    if operation is None:
        return Decision(state, reply=None)
    if operation.state == OperationState.RUNNING:
        why = Unavailable("The change couldn't be started. Try again.", retryAfter=1)
        if operation.change_set is not None:
            return halted(state, operation, code=why.code, detail=why.detail, at=message.at)
        ended = replace(operation, state=OperationState.NOT_SENT, code=why.code, detail=why.detail)
        return end(state, ended, message.at, why)
    ended = replace(
        operation,
        state=OperationState.UNCLEAR,
        code="unclear",
        detail="The outcome of this change is unknown. Check the shop before you repeat it.",
    )
    return end(state, ended, message.at)


def applied(state: StoreState, message: OperationApplied) -> Silence:
    """Keep what the shop is now."""
    operation = under_way(state, message.operation_id)
    if operation is None:
        return Decision(state, reply=None)
    return end(
        state,
        replace(
            operation,
            state=OperationState.APPLIED,
            before=message.before,
            after=message.after,
            version=message.version,
            code=message.code,
            detail=message.detail,
        ),
        message.at,
    )


def rejected(state: StoreState, message: OperationRejected) -> Silence:
    """Keep why it was not done."""
    operation = under_way(state, message.operation_id)
    if operation is None:
        return Decision(state, reply=None)
    return end(
        state,
        replace(
            operation,
            state=OperationState.REJECTED,
            before=message.before,
            version=message.version,
            code=message.code,
            detail=message.detail,
        ),
        message.at,
        platform_code=message.platform_code,
    )


def not_sent(state: StoreState, message: OperationNotSent) -> Silence:
    """Let whoever waits know that it was not done for now."""
    operation = under_way(state, message.operation_id)
    if operation is None:
        return Decision(state, reply=None)
    if operation.change_set is not None:
        # Where the platform does not let one through, the others of its plan wait until somebody resumes them.
        return halted(state, operation, code=message.code, detail=message.detail, at=message.at)
    ended = replace(
        operation, state=OperationState.NOT_SENT, code=message.code, detail=message.detail
    )
    refusal = Refusal(
        message.detail,
        status=message.status,
        code=message.code,
        retryAfter=message.retry_after,
        platformStatus=message.platform_status,
        scope=message.scope,
    )
    return end(state, ended, message.at, refusal, is_throttled=message.is_throttled)


def unanswered(state: StoreState, message: OperationUnanswered) -> Silence:
    """Look again later; after the last look say what is known, if that is anything."""
    operation = under_way(state, message.operation_id)
    if operation is None:
        return Decision(state, reply=None)
    looks = operation.looks + 1
    if looks >= LOOKS and message.is_unchanged:
        ended = replace(
            operation,
            looks=looks,
            state=OperationState.REJECTED,
            code="not_applied",
            detail="Shopify never responded, and nothing changed in the shop. Try again.",
        )
        return end(state, ended, message.at)
    if looks >= LOOKS:
        ended = replace(
            operation,
            looks=looks,
            state=OperationState.UNCLEAR,
            code="unclear",
            detail="Shopify never responded, and other users have changed the item since. Check it"
            " in the shop.",
        )
        return end(state, ended, message.at)
    unknown = replace(
        operation,
        looks=looks,
        state=OperationState.UNKNOWN,
        code="unknown",
        detail="Shopify didn't respond. We are checking whether the change was applied; check the"
        " operation again later.",
    )
    again = Perform(
        CarryOut(
            store_id=state.store_id,
            operation_id=operation.operation_id,
            look=looks,
            organization_id=state.organization_id,
        ),
        key=f"carry-out:{operation.operation_id}:{looks}",
        due_at=message.at + LOOK_AFTER[looks - 1],
    )
    after, effects = start_next(state.with_operation(unknown))
    return Decision(
        after,
        reply=None,
        records=() if operation.looks else (audit_of(state, unknown),),
        effects=(again, *effects),
        resolve={waiter_of(unknown): view(unknown)},
    )


def left_behind(state: StoreState, at: datetime) -> Decision[StoreState, None]:
    """End what was asked of the shop that the store leaves: it must not be done in another one.

    What may have reached the platform was sent with the former token, and nobody can look there now.
    """
    after, records = state, list[AgentOperation | AuditRecord]()
    resolve, effects = dict[str, Any](), list[Tell]()
    for one in state.operations:
        is_sent = one.state in {OperationState.SENT, OperationState.UNKNOWN}
        ended = replace(
            one,
            state=OperationState.UNCLEAR if is_sent else OperationState.REJECTED,
            code="shop_changed",
            detail=SENT_ELSEWHERE if is_sent else NOT_DONE_ELSEWHERE,
            intent=None,
            after=None,
            finished_at=at,
        )
        after = after.with_ended(ended)
        records += [ended, audit_of(state, ended)]
        resolve |= {waiter_of(ended): view(ended), **plan_over(after, ended)}
        effects += tell_launch(ended, at)
    return Decision(after, reply=None, records=records, effects=effects, resolve=resolve)


def _replay(state: StoreState, known: AgentOperation) -> Shown:
    """Answer what became of it, and put on record that it was asked again."""
    audit = audit_of(state, known, f"{EVENT}.replayed")
    return Decision(state, reply=view(known, replayed=True), records=(audit,))
