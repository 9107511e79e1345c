"""The plans on offer (rules/plans#catalogue)."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization import plans
from tolsey.actors.refusals import NotFound, Unauthorized
from tolsey.http.answers.money.credits import ChoicesAnswer, PlanAnswer, PlansAnswer
from tolsey.http.web.access import identify, public
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.context import now, service
from tolsey.storage.people import accounts

routes = Blueprint("plans", __name__, url_prefix="/api/plans")
tag_blueprint(routes, ["Billing"])


class PlansQuery(ApiModel):
    """For whom the plans are read; without an organization, for anyone."""

    organization_id: Identifier | None = None


@routes.get("")
@public
async def list_plans(query_args: PlansQuery) -> PlansAnswer:
    """List the plans; for an organization of the caller's, also whether it can pay for a year."""
    named = query_args.organization_id
    return PlansAnswer(
        items=[PlanAnswer.of(plan) for plan in plans.CATALOGUE],
        next_cursor=None,
        organization=await _choices(named) if named is not None else None,
    )


async def _choices(organization_id: str) -> ChoicesAnswer:
    """Say what an organization has and when it can pay for a year; 401, or 404 for a stranger."""
    signed_in = await identify()
    if signed_in is None:
        raise Unauthorized(
            "You aren't signed in, or your session has expired. Sign in and try again."
        )
    found = await accounts.find_organization(service().database, organization_id, signed_in.user_id)
    if found is None:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    return ChoicesAnswer(
        id=found.id,
        plan=found.plan,
        yearly_available=plans.is_yearly_open(found.created_at, now()),
        yearly_from=plans.yearly_from(found.created_at),
    )
