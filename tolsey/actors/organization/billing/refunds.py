"""Which payments are given back (product/billing.md, "Decided"; specification, Limits)."""

from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.storage.records.money.credits import PaymentFacts

PURCHASE_WITHIN: Final = timedelta(hours=24)
SUBSCRIPTION_WITHIN: Final = timedelta(days=7)


def require_known(payment: PaymentFacts | None) -> PaymentFacts:
    """Return a payment that granted something; 404 for any other."""
    if payment is None or payment.kind not in {"purchase", "allowance"}:
        raise NotFound("The organization has no such payment.")
    return payment


def require_purchase(payment: PaymentFacts, *, is_unused: bool, at: datetime) -> None:
    """Refuse a purchase of credits that is not given back any more, and say why."""
    _require_whole(payment)
    if payment.granted_at is None or at - payment.granted_at >= PURCHASE_WITHIN:
        raise Conflict("Credits are refunded within 24 hours.", code="refund_too_late")
    if not is_unused:
        raise Conflict("Some of these credits have been used.", code="refund_credits_used")


def require_subscription(
    payment: PaymentFacts, view: SubscriptionView, *, has_chatted: bool, at: datetime
) -> None:
    """Refuse a payment of a subscription that is not given back any more, and say why.

    Its time runs from the payment: a yearly one grants an allowance each month, which begins none.
    """
    _require_whole(payment)
    if view.paid_invoice_id != payment.payment_ref or view.paid_at is None:
        raise Conflict("A newer payment has been made since.", code="refund_not_newest")
    if at - view.paid_at >= SUBSCRIPTION_WITHIN:
        raise Conflict("A subscription is refunded within 7 days.", code="refund_too_late")
    if has_chatted:
        raise Conflict("Messages have been sent since.", code="refund_messages_sent")


def is_returned(payment: PaymentFacts) -> bool:
    """Tell whether all of a payment has been given back."""
    return 0 < payment.total <= payment.refunded


def _require_whole(payment: PaymentFacts) -> None:
    if payment.refunded:
        raise Conflict("This payment has been refunded.", code="already_refunded")
    if payment.dispute_removed:
        raise Conflict("This payment is disputed; its bank gives it back.", code="payment_disputed")
