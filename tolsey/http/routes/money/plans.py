"""The plans on offer (contract section 8)."""

from typing import Any

from quart import Blueprint
from quart_schema import tag_blueprint, validate_querystring

from tolsey.actors.organization import plans
from tolsey.actors.organization.plans import Cadence, Plan
from tolsey.actors.refusals import NotFound, Unauthorized
from tolsey.http.access import identify, public
from tolsey.http.api_model import ApiModel, Identifier
from tolsey.http.context import now, service
from tolsey.http.views import timestamp
from tolsey.storage.people import accounts

routes = Blueprint("plans", __name__, url_prefix="/api/plans")
tag_blueprint(routes, ["Billing"])


class PlansQuery(ApiModel):
    """For whom the plans are read; without an organization, for anyone."""

    organization_id: Identifier | None = None


@routes.get("")
@public
@validate_querystring(PlansQuery)
async def list_plans(query_args: PlansQuery) -> dict[str, Any]:
    """List the plans; for an organization of the caller's, also whether it can pay for a year."""
    listed: dict[str, Any] = {
        "items": [plan_view(plan) for plan in plans.CATALOGUE],
        "nextCursor": None,
    }
    if query_args.organization_id is None:
        return listed
    return {**listed, "organization": await _choices(query_args.organization_id)}


async def _choices(organization_id: str) -> dict[str, Any]:
    """Say what an organization has and when it can pay for a year; 401, or 404 for a stranger."""
    signed_in = await identify()
    if signed_in is None:
        raise Unauthorized("Sign in first.")
    found = await accounts.find_organization(service().database, organization_id, signed_in.user_id)
    if found is None:
        raise NotFound("There is no such organization.")
    return {
        "id": found.id,
        "plan": found.plan,
        "yearlyAvailable": plans.is_yearly_open(found.created_at, now()),
        "yearlyFrom": timestamp(plans.yearly_from(found.created_at)),
    }


def plan_view(plan: Plan) -> dict[str, Any]:
    """Show a plan: no price is one that is not sold, and what is null besides has no bound.

    Of a plan by contract, null is what the contract says.
    """
    return {
        "code": plan.code,
        "name": plan.name,
        "byContract": plan is plans.CUSTOM,
        "monthlyPrice": _price(plan, Cadence.MONTHLY),
        "yearlyPrice": _price(plan, Cadence.YEARLY),
        "taxBehavior": plans.TAX_BEHAVIOUR,
        "monthlyCredits": _credits(plan.monthly_allowance_micro),
        "dailyBonus": _credits(plan.daily_bonus_micro),
        "storesIncluded": plan.stores_included,
        "concurrentWorkflows": plan.concurrent_workflows,
        "mcpCalls": {"perMinute": plan.mcp_per_minute, "perDay": plan.mcp_per_day},
    }


def _price(plan: Plan, cadence: Cadence) -> dict[str, Any] | None:
    price = plan.prices.get(cadence)
    return None if price is None else _money(price.cents)


def _money(cents: int) -> dict[str, Any]:
    return {"amount": cents, "currency": plans.CURRENCY}


def _credits(micro: int | None) -> dict[str, Any] | None:
    return None if micro is None else _money(micro // plans.MICRO_PER_CENT)
