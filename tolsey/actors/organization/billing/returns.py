"""Giving a payment back, step by step: the refund first, then the end of what it paid for.

Whoever were left with neither would have paid for nothing (rules/plans#refunds).
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import orjson

from tolsey.actors.organization.billing import refunds
from tolsey.actors.organization.billing.calls import (
    EndSubscriptionNow,
    RefundMade,
    RefundPayment,
    RefundRefused,
    ReturnGivenUp,
    SubscriptionEndedNow,
)
from tolsey.actors.organization.billing.messages import ALIVE, GiveBackPayment, LeaveProcessor
from tolsey.actors.organization.ledger import payments
from tolsey.actors.organization.ledger.messages import PaymentObserved
from tolsey.actors.organization.operations import under_way
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Refusal
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.runtime.operations import Operation

REFUND: Final = "refund"
LEASE: Final = timedelta(hours=24)
"""How long the credits of a refund are kept: longer than it is tried, then nobody speaks of it."""

Step = Decision[OrganizationState, None]


def begin(
    state: OrganizationState,
    message: GiveBackPayment,
    kept: Operation | None,
    *,
    has_chatted: bool,
) -> Decision[OrganizationState, Operation]:
    """Begin to give a payment back, unless that is under way; `kept` is what is on disk of it."""
    known = under_way.known(state, message.operation_id, kept) or under_way.about(
        state, REFUND, message.payment_ref
    )
    if known is not None:
        return under_way.answer(state, known)
    until = message.at + LEASE
    decided, begun = refunds.begin(state, message, has_chatted=has_chatted, lease_until=until)
    subscription_id = begun.subscription_id
    operation = Operation(
        id=message.operation_id,
        organization_id=state.organization_id,
        user_id=message.user_id,
        kind=REFUND,
        subject=message.payment_ref,
        state="running",
        wanted=orjson.dumps({"subscriptionId": subscription_id}).decode(),
        created_at=message.at,
        result=_result(state, message.payment_ref, None, subscription_id),
    )
    if begun.is_returned:
        first = _ending(operation, str(subscription_id))
    else:
        call = RefundPayment(state.organization_id, operation.id, message.payment_ref)
        first = Perform(call, key=f"refund:{operation.id}")
    return Decision(
        under_way.begin(decided.state, operation),
        operation,
        records=decided.records,
        effects=(first,),
    )


def made(state: OrganizationState, message: RefundMade) -> Step:
    """Take the credits that went back, and end what the payment paid for."""
    told_of = PaymentObserved(
        payment_ref=message.payment_ref,
        credits=0,
        total=message.total_cents,
        refunded=message.refunded_cents,
        disputes=(),
        at=message.at,
    )
    seen = payments.observe(state, told_of)
    decision: Step = Decision(seen.state, None, records=seen.records)
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return decision
    subscription_id = orjson.loads(operation.wanted)["subscriptionId"]
    outcome = _result(state, message.payment_ref, message.refund_id, subscription_id)
    operation = replace(operation, result=outcome)
    if subscription_id is None:
        return under_way.end(decision, operation, message.at)
    return Decision(
        under_way.keep(seen.state, operation),
        None,
        records=seen.records,
        effects=(_ending(operation, subscription_id),),
    )


def refused(state: OrganizationState, message: RefundRefused) -> Step:
    """Free what was kept for a refund that will not be, and say why it will not."""
    dropped = refunds.drop(state, message.payment_ref, message.at)
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return dropped
    said: dict[str, Any] = {"processorCode": message.processor_code}
    why = Refusal(message.detail, status=message.status, code=message.code, **said)
    return under_way.end(dropped, operation, message.at, why=why)


def ended(state: OrganizationState, message: SubscriptionEndedNow) -> Step:
    """Say that all of it is done: the processor's event takes the plan away."""
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return Decision(state, None)
    return under_way.end(Decision(state, None), operation, message.at)


def leave(state: OrganizationState, message: LeaveProcessor) -> Decision[OrganizationState, bool]:
    """Have what is left of the subscription ended at the processor; nobody waits for it."""
    del message
    known = state.subscription
    if known is None or known.subscription_id is None or known.status not in ALIVE:
        return Decision(state, reply=False)
    call = EndSubscriptionNow(
        organization_id=state.organization_id,
        operation_id=f"left:{state.organization_id}",
        payment_ref="",
        subscription_id=known.subscription_id,
    )
    ended = audit_record(
        "subscription.ended_with_organization",
        known.subscription_id,
        state.organization_id,
        "system",
    )
    return Decision(
        state,
        reply=True,
        records=(ended,),
        effects=(Perform(call, key=f"end:{known.subscription_id}"),),
    )


def given_up(state: OrganizationState, message: ReturnGivenUp) -> Step:
    """Say how far it came: an operator goes on from the dead letter."""
    decision: Step = Decision(state, None)
    detail = "The payment was refunded, but the plan couldn't be canceled. An operator can retry it from the dead letters."
    if not message.is_returned:
        decision = refunds.release(state, message.payment_ref, message.at)
        detail = "Stripe is unreachable, so the outcome is unknown. Check the payment in Stripe before you try again."
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return decision
    why = Refusal(detail, status=502, code="processor_unreachable")
    return under_way.end(decision, operation, message.at, why=why)


def _ending(operation: Operation, subscription_id: str) -> Perform:
    call = EndSubscriptionNow(
        organization_id=operation.organization_id,
        operation_id=operation.id,
        payment_ref=operation.subject,
        subscription_id=subscription_id,
    )
    return Perform(call, key=f"end:{operation.id}")


def _result(
    state: OrganizationState, payment_ref: str, refund_id: str | None, subscription_id: str | None
) -> str:
    outcome = {
        "id": refund_id,
        "organizationId": state.organization_id,
        "paymentRef": payment_ref,
        "subscriptionEnded": subscription_id,
    }
    return orjson.dumps(outcome).decode()
