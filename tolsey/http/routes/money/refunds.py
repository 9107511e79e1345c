"""Refunds by an operator, within the rules of product/billing.md ("Decided")."""

from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint, validate_request

from tolsey.actors.organization.billing.messages import BeginRefund, DropRefund
from tolsey.actors.organization.messages import PaymentObserved, organization
from tolsey.actors.processor import ProcessorRefused, Refunded
from tolsey.actors.refusals import Conflict
from tolsey.http.access import administrator, caller
from tolsey.http.api_model import ApiModel, Identifier, Why
from tolsey.http.context import ask, now, service
from tolsey.http.idempotency import idempotent
from tolsey.http.money.billing import require_key

LEASE: Final = timedelta(minutes=10)
"""How long the credits of a refund are kept whose answer never came; its event mostly has."""

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
    """Give a payment back; a subscription's ends with it. Refused with the reason otherwise.

    The refund comes first: whoever is left with neither would have paid for nothing.
    """
    require_key()
    to, at = organization(data.organization_id), now()
    begin = BeginRefund(data.payment_ref, data.reason, caller().user_id, at, at + LEASE)
    begun = await ask(to, begin)
    made = None if begun.is_returned else await _refunded(data)
    if made is not None:
        refunded = made.total_cents, made.refunded_cents
        await ask(to, PaymentObserved(data.payment_ref, 0, *refunded, (), now()))
    id = begun.subscription_id
    if id is not None:
        await service().payments.end_now(id, key=f"end:{id}")
    return {
        "id": made.id if made else None,
        "organizationId": data.organization_id,
        "paymentRef": data.payment_ref,
        "subscriptionEnded": id,
    }, 201


async def _refunded(data: Refund) -> Refunded:
    """Ask for the refund once for the payment, whoever asks and however often."""
    try:
        paid_with = await _paid_with(data.payment_ref)
        return await service().payments.refund(
            paid_with, None, organization_id=data.organization_id, key=f"refund:{paid_with}"
        )
    except (ProcessorRefused, Conflict):
        await ask(organization(data.organization_id), DropRefund(data.payment_ref, now()))
        raise


async def _paid_with(payment_ref: str) -> str:
    """Name the payment itself: the ledger names a subscription's by its invoice."""
    if not payment_ref.startswith("in_"):
        return payment_ref
    invoice = await service().payments.invoice(payment_ref)
    paid_with = invoice.payment_intent_id or invoice.charge_id
    if paid_with is None:
        raise Conflict("Nothing was collected for this invoice.", code="nothing_to_refund")
    return paid_with
