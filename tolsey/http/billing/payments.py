"""What an organization pays for: buying a plan, changing it, ending it (contract section 8)."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints
from quart import Blueprint
from quart.typing import ResponseReturnValue
from quart_schema import tag_blueprint, validate_querystring, validate_request

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.acts import next_plan
from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.http.answers.views import timestamp
from tolsey.http.billing import acts as billing
from tolsey.http.clients.payments.requests import Feedback
from tolsey.http.operations import answer_of
from tolsey.http.web.access import member_of, session
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.idempotency import idempotent

Word = Annotated[str, Field(max_length=40)]
Comment = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]

routes = Blueprint("payments", __name__, url_prefix="/api/payments")
tag_blueprint(routes, ["Billing"])


class OfOrganization(ApiModel):
    """Which organization."""

    organization_id: Identifier


class Choice(OfOrganization):
    """A plan of the catalogue, paid monthly or yearly."""

    plan: Word
    cadence: Word


class Cancellation(OfOrganization):
    """Whose subscription shall end, and why if they want to say."""

    feedback: Feedback | None = None
    comment: Comment | None = None


@routes.post("/checkout")
@session
@validate_request(Choice)
@idempotent
async def check_out(data: Choice) -> dict[str, Any]:
    """Open the processor's page on which a first plan is bought."""
    return {"url": await billing.check_out(data.organization_id, data.plan, data.cadence)}


@routes.post("/change")
@session
@validate_request(Choice)
@idempotent
async def change_plan(data: Choice) -> ResponseReturnValue:
    """Change the plan: up at once with an invoice that is paid now, down when the period ends.

    To choose the plan that runs takes back a change, or an end, that was to come.
    """
    return answer_of(await billing.change(data.organization_id, data.plan, data.cadence))


@routes.post("/cancel")
@session
@validate_request(Cancellation)
@idempotent
async def cancel_subscription(data: Cancellation) -> ResponseReturnValue:
    """Let the subscription end with its period; the stores stay."""
    id, feedback, comment = data.organization_id, data.feedback, data.comment
    return answer_of(await billing.cancel(id, feedback=feedback, comment=comment))


@routes.post("/portal")
@session
@validate_request(OfOrganization)
async def open_portal(data: OfOrganization) -> dict[str, Any]:
    """Open the processor's portal; its address is for one visit, so a repeat opens another."""
    return {"url": await billing.visit_portal(data.organization_id)}


@routes.get("/portal")
@session
@validate_querystring(OfOrganization)
async def get_portal(query_args: OfOrganization) -> dict[str, Any]:
    """Open the processor's portal (specification, Billing)."""
    return {"url": await billing.visit_portal(query_args.organization_id)}


@routes.get("/subscription")
@session
@validate_querystring(OfOrganization)
async def get_subscription(query_args: OfOrganization) -> dict[str, Any]:
    """Show what an organization pays for, what changes next, and what is owed."""
    role = await member_of(query_args.organization_id)
    view = await billing.standing(query_args.organization_id)
    return subscription_view(view, sees_invoices=role != "member")


def subscription_view(view: SubscriptionView, *, sees_invoices: bool) -> dict[str, Any]:
    """Show a subscription; the address of an open invoice is for who may pay it."""
    subscribed = view.is_subscribed
    return {
        "organizationId": view.organization_id,
        "plan": view.plan,
        "cadence": view.cadence,
        "status": view.status,
        "periodStart": timestamp(view.period_start) if subscribed else None,
        "periodEnd": timestamp(view.period_end) if subscribed else None,
        "cancelAtPeriodEnd": view.cancel_at_period_end if subscribed else False,
        "nextChange": _next(view),
        "dunning": _dunning(view, sees_invoices=sees_invoices),
        "yearlyFrom": timestamp(plans.yearly_from(view.created_at)),
    }


def _next(view: SubscriptionView) -> dict[str, Any] | None:
    following = next_plan(view)
    if following is None:
        return None
    cadence = following.cadence if following.plan.is_sold else None
    return {"plan": following.plan.code, "cadence": cadence, "at": timestamp(view.period_end)}


def _dunning(view: SubscriptionView, *, sees_invoices: bool) -> dict[str, Any] | None:
    if view.dunning_since is None:
        return None
    url = view.dunning_url if sees_invoices else None
    return {"since": timestamp(view.dunning_since), "invoiceUrl": url}
