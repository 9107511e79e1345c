"""Refunds by an operator, within rules/plans#refunds."""

from typing import Annotated

from pydantic import StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization.billing.messages import GiveBackPayment
from tolsey.actors.organization.messages import organization
from tolsey.http.answers.base import Created
from tolsey.http.answers.money.billing import RefundAnswer
from tolsey.http.billing.acts import require_key
from tolsey.http.operations import AcceptedOperation, answer_of, carried_out
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import ApiModel, Identifier, Why
from tolsey.http.web.context import new_id, now
from tolsey.http.web.repeats.idempotency import idempotent

routes = Blueprint("refunds", __name__, url_prefix="/api/admin/refunds")
tag_blueprint(routes, ["Administration"])


class Refund(ApiModel):
    """Which payment is given back whole, and why; the ledger names payments as `reference`."""

    organization_id: Identifier
    payment_ref: Annotated[str, StringConstraints(pattern=r"^(pi|ch|in)_[A-Za-z0-9_]{1,200}$")]
    reason: Why


@routes.post("")
@administrator
@idempotent
async def give_back(data: Refund) -> tuple[RefundAnswer, Created] | AcceptedOperation:
    """Give a payment back; a subscription's ends with it. Refused with the reason otherwise.

    The refund comes first: whoever is left with neither would have paid for nothing.
    """
    require_key()
    message = GiveBackPayment(
        operation_id=new_id("operation"),
        payment_ref=data.payment_ref,
        reason=data.reason,
        user_id=caller().user_id,
        at=now(),
    )
    operation = await carried_out(organization(data.organization_id), message)
    return answer_of(operation, RefundAnswer, 201)
