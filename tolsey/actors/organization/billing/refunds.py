"""Which payments are given back (rules/plans#refunds)."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.organization.billing import acts
from tolsey.actors.organization.billing.messages import (
    GiveBackPayment,
    RefundBegun,
    SubscriptionView,
)
from tolsey.actors.organization.ledger.credits import Hold
from tolsey.actors.organization.ledger.entries import Draft, opened
from tolsey.actors.organization.ledger.payments import refund_hold, refund_hold_id
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.credits import CreditedPayment, CreditLot

PURCHASE_WITHIN: Final = timedelta(hours=24)
SUBSCRIPTION_WITHIN: Final = timedelta(days=7)

Begun = tuple[Decision[OrganizationState, None], RefundBegun]
"""What a refund changes at once, and what is to be done for it at the processor."""


def begin(
    state: OrganizationState,
    message: GiveBackPayment,
    *,
    has_chatted: bool,
    lease_until: datetime,
) -> Begun:
    """Decide whether a payment goes back; what is left of its credits is kept for the refund.

    A repeat is judged by when we decided. What was returned elsewhere was not ours to decide: its
    subscription ends with it.
    """
    draft = opened(state, message.at)
    payment = _require_known(draft.payments.get(message.payment_ref))
    at, ends = payment.refund_asked_at or message.at, None
    is_ours = payment.refund_asked_at is not None
    is_returned = False
    if payment.kind == "purchase":
        _require_purchase(payment, is_unused=_is_unused(draft, payment), at=at)
    else:
        view = acts.view_of(state, message.at)
        ends = view.subscription_id if view.is_subscribed else None
        is_newest = view.paid_invoice_id == payment.payment_ref
        is_returned = 0 < payment.total <= payment.refunded and ends is not None and is_newest
        if not is_returned:
            _require_subscription(payment, view, has_chatted=has_chatted, at=at)
    draft.records.append(
        audit_record(
            "refund.requested",
            message.payment_ref,
            state.organization_id,
            message.user_id,
            payment=message.payment_ref,
            reason=message.reason,
            subscription=ends,
            elsewhere=is_returned and not is_ours,
        )
    )
    reply = RefundBegun(is_returned, ends)
    if is_returned:
        after, records = draft.unsealed()
        return Decision(after, None, records=records), reply
    draft.keep_payment(replace(payment, refund_asked_at=at))
    return _pinned(draft, message, lease_until), reply


def drop(
    state: OrganizationState, payment_ref: str, at: datetime
) -> Decision[OrganizationState, None]:
    """Free what was kept for a refund that will not be: nothing was decided."""
    draft = opened(state, at)
    payment = draft.payments.get(payment_ref)
    if payment is not None:
        draft.keep_payment(replace(payment, refund_asked_at=None))
    return _freed(draft, payment_ref)


def release(
    state: OrganizationState, payment_ref: str, at: datetime
) -> Decision[OrganizationState, None]:
    """Free what was kept for a refund of which nobody knows; asked again, it was decided in time."""
    return _freed(opened(state, at), payment_ref)


def _freed(draft: Draft, payment_ref: str) -> Decision[OrganizationState, None]:
    if hold := refund_hold(draft, payment_ref):
        draft.end(hold, 0)
    key = f"refund.dropped:{payment_ref}:{draft.seq}"
    after, records = draft.close_if_moved(key, "release", payment_ref)
    return Decision(after, None, records=records)


def _pinned(
    draft: Draft, message: GiveBackPayment, lease_until: datetime
) -> Decision[OrganizationState, None]:
    """Keep what is left of the payment's own credits, or keep it for longer."""

    def is_own(lot: CreditLot) -> bool:
        return lot.reference == message.payment_ref

    id = refund_hold_id(message.payment_ref, draft.seq)
    known = refund_hold(draft, message.payment_ref) or Hold(
        id=id, lines=(), amount=0, used=0, lease_until=lease_until
    )
    amount = sum(lot.free for lot in draft.lots.values() if is_own(lot))
    lines = (*known.lines, *draft.pin(known.id, amount, is_own))
    if lines:
        draft.keep_hold(
            Hold(
                id=known.id,
                lines=lines,
                amount=known.amount + amount,
                used=0,
                lease_until=lease_until,
            )
        )
    after, records = draft.close_if_moved(id, "hold", message.payment_ref)
    return Decision(after, None, records=records)


def _is_unused(draft: Draft, payment: CreditedPayment) -> bool:
    """Tell whether all that a payment granted is there, pinned by nothing but its own refund."""
    own = [lot for lot in draft.lots.values() if lot.reference == payment.payment_ref]
    kept = refund_hold(draft, payment.payment_ref)
    free = sum(lot.free for lot in own) + (kept.amount if kept else 0)
    return free == payment.granted


def _require_known(payment: CreditedPayment | None) -> CreditedPayment:
    """Return a payment that granted something; 404 for any other."""
    if payment is None or payment.kind not in {"purchase", "allowance"}:
        raise NotFound(
            "Your organization has no payment with this id. Check the id in the payment list."
        )
    return payment


def _require_purchase(payment: CreditedPayment, *, is_unused: bool, at: datetime) -> None:
    """Refuse a purchase of credits that is not given back any more, and say why."""
    _require_whole(payment)
    if payment.granted_at is None or at - payment.granted_at >= PURCHASE_WITHIN:
        raise Conflict(
            "Credit purchases can be refunded only within 24 hours. Contact support if you need"
            " help.",
            code="refund_too_late",
        )
    if not is_unused:
        raise Conflict(
            "Some of these credits were already used, so the purchase can't be refunded.",
            code="refund_credits_used",
        )


def _require_subscription(
    payment: CreditedPayment, view: SubscriptionView, *, has_chatted: bool, at: datetime
) -> None:
    """Refuse a payment of a subscription that is not given back any more, and say why.

    Its time runs from the payment: a yearly one grants an allowance each month, which begins none.
    """
    _require_whole(payment)
    if view.paid_invoice_id != payment.payment_ref or view.paid_at is None:
        raise Conflict(
            "Only the most recent payment can be refunded, and a newer one exists. Request a"
            " refund for that one.",
            code="refund_not_newest",
        )
    if at - view.paid_at >= SUBSCRIPTION_WITHIN:
        raise Conflict(
            "Subscription payments can be refunded only within 7 days. Cancel the subscription"
            " to stop renewal.",
            code="refund_too_late",
        )
    if has_chatted:
        raise Conflict(
            "The plan was used after this payment, so it can't be refunded. Cancel the"
            " subscription to stop renewal.",
            code="refund_messages_sent",
        )


def _require_whole(payment: CreditedPayment) -> None:
    if payment.refunded:
        raise Conflict(
            "This payment was already refunded. Check the payment list for its date.",
            code="already_refunded",
        )
    if payment.dispute_removed:
        raise Conflict(
            "This payment is disputed, so the cardholder's bank decides about it. Wait for the"
            " outcome of the dispute.",
            code="payment_disputed",
        )
