"""What an organization pays for: buying a plan, changing it, ending it (rules/plans#changing)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.acts import next_plan
from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.http.answers.money.billing import (
    CancelledAnswer,
    DunningAnswer,
    NextPlanAnswer,
    PlanChangedAnswer,
    SubscriptionAnswer,
)
from tolsey.http.answers.money.credits import UrlAnswer
from tolsey.http.billing import acts as billing
from tolsey.http.clients.payments.requests import Feedback
from tolsey.http.operations import AcceptedOperation, answer_of
from tolsey.http.web.access import member_of, session
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.repeats.idempotency import idempotent

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
@idempotent
async def check_out(data: Choice) -> UrlAnswer:
    """Open the processor's page on which a first plan is bought."""
    return UrlAnswer(url=await billing.check_out(data.organization_id, data.plan, data.cadence))


@routes.post("/change")
@session
@idempotent
async def change_plan(data: Choice) -> tuple[PlanChangedAnswer, Literal[200]] | AcceptedOperation:
    """Change the plan: up at once with an invoice that is paid now, down when the period ends.

    To choose the plan that runs takes back a change, or an end, that was to come.
    """
    made = await billing.change(data.organization_id, data.plan, data.cadence)
    return answer_of(made, PlanChangedAnswer, 200)


@routes.post("/cancel")
@session
@idempotent
async def cancel_subscription(
    data: Cancellation,
) -> tuple[CancelledAnswer, Literal[200]] | AcceptedOperation:
    """Let the subscription end with its period; the stores stay."""
    id, feedback, comment = data.organization_id, data.feedback, data.comment
    made = await billing.cancel(id, feedback=feedback, comment=comment)
    return answer_of(made, CancelledAnswer, 200)


@routes.post("/portal")
@session
async def open_portal(data: OfOrganization) -> UrlAnswer:
    """Open the processor's portal; its address is for one visit, so a repeat opens another."""
    return UrlAnswer(url=await billing.visit_portal(data.organization_id))


@routes.get("/portal")
@session
async def get_portal(query_args: OfOrganization) -> UrlAnswer:
    """Open the processor's portal."""
    return UrlAnswer(url=await billing.visit_portal(query_args.organization_id))


@routes.get("/subscription")
@session
async def get_subscription(query_args: OfOrganization) -> SubscriptionAnswer:
    """Show what an organization pays for, what changes next, and what is owed."""
    role = await member_of(query_args.organization_id)
    view = await billing.standing(query_args.organization_id)
    return subscription_view(view, sees_invoices=role != "member")


def subscription_view(view: SubscriptionView, *, sees_invoices: bool) -> SubscriptionAnswer:
    """Show a subscription; the address of an open invoice is for who may pay it."""
    subscribed = view.is_subscribed
    return SubscriptionAnswer.read(
        view,
        period_start=view.period_start if subscribed else None,
        period_end=view.period_end if subscribed else None,
        cancel_at_period_end=view.cancel_at_period_end if subscribed else False,
        next_change=_next(view),
        dunning=_dunning(view, sees_invoices=sees_invoices),
        yearly_from=plans.yearly_from(view.created_at),
    )


def _next(view: SubscriptionView) -> NextPlanAnswer | None:
    following = next_plan(view)
    if following is None:
        return None
    cadence = following.cadence if following.plan.is_sold else None
    return NextPlanAnswer(plan=following.plan.code, cadence=cadence, at=view.period_end)


def _dunning(view: SubscriptionView, *, sees_invoices: bool) -> DunningAnswer | None:
    if view.dunning_since is None:
        return None
    url = view.dunning_url if sees_invoices else None
    return DunningAnswer(since=view.dunning_since, invoice_url=url)
