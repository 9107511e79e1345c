"""Refunds by an operator, within the rules of product/billing.md ("Decided")."""

from typing import Annotated, Any

from pydantic import StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint, validate_request

from tolsey.actors.organization.billing import refunds
from tolsey.actors.refusals import Conflict
from tolsey.http.access import administrator
from tolsey.http.api_model import ApiModel, Identifier, Why
from tolsey.http.context import now, service
from tolsey.http.idempotency import idempotent
from tolsey.http.money.billing import record, require_key, standing
from tolsey.storage.money import credits
from tolsey.storage.money import refunds as rows
from tolsey.storage.records.money.credits import PaymentFacts

routes = Blueprint("refunds", __name__, url_prefix="/api/admin/refunds")
tag_blueprint(routes, ["Administration"])


class Refund(ApiModel):
    """Which payment is given back whole, and why; the ledger names payments as `reference`."""

    organization_id: Identifier
    payment_ref: Annotated[str, StringConstraints(pattern=r"^(pi|ch|in)_[A-Za-z0-9_]{1,200}$")]
    reason: Why


@routes.post("")
@administrator
@validate_request(Refund)
@idempotent
async def give_back(data: Refund) -> tuple[dict[str, Any], int]:
    """Give a payment back; a subscription's ends with it. Refused with the reason otherwise."""
    require_key()
    payment = refunds.require_known(
        await credits.payment(service().database, data.organization_id, data.payment_ref)
    )
    ended: str | None = None
    refund_id: str | None
    if payment.kind == "purchase":
        refund_id = await _purchase(data, payment)
    else:
        refund_id, ended = await _subscription(data, payment)
    return {
        "id": refund_id,
        "organizationId": data.organization_id,
        "paymentRef": data.payment_ref,
        "subscriptionEnded": ended,
    }, 201


async def _purchase(data: Refund, payment: PaymentFacts) -> str:
    is_unused = await rows.is_unused(service().database, data.organization_id, payment.payment_ref)
    refunds.require_purchase(payment, is_unused=is_unused, at=now())
    return await _refunded(data, payment.payment_ref)


async def _subscription(data: Refund, payment: PaymentFacts) -> tuple[str | None, str | None]:
    """Give the payment back first: whoever is left with neither would have paid for nothing."""
    running, view = service(), await standing(data.organization_id)
    id = view.subscription_id if view.is_subscribed else None
    is_newest = view.paid_invoice_id == payment.payment_ref
    refund_id = None
    if not (refunds.is_returned(payment) and id is not None and is_newest):
        since = view.paid_at or now()
        chatted = await rows.has_chatted(running.database, data.organization_id, since)
        refunds.require_subscription(payment, view, has_chatted=chatted, at=now())
        invoice = await running.payments.invoice(payment.payment_ref)
        paid_with = invoice.payment_intent_id or invoice.charge_id
        if paid_with is None:
            raise Conflict("Nothing was collected for this invoice.", code="nothing_to_refund")
        refund_id = await _refunded(data, paid_with)
    if id is not None:
        await running.payments.end_now(id, key=f"end:{id}")
    return refund_id, id


async def _refunded(data: Refund, paid_with: str) -> str:
    """Ask for the refund once for the payment, whoever asks and however often."""
    await record(
        data.organization_id,
        "refund.requested",
        payment=data.payment_ref,
        reason=data.reason,
    )
    return await service().payments.refund(
        paid_with, None, organization_id=data.organization_id, key=f"refund:{paid_with}"
    )
