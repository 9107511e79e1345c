"""The intelligence API (rules/accounts#api-keys): keys are proved and calls counted; what it reads is not built."""

from quart import Blueprint, Response

from tolsey.actors.organization import plans
from tolsey.actors.refusals import NotBuilt
from tolsey.http.web import limits, policies
from tolsey.http.web.access import api_key, key_holder
from tolsey.http.web.unbuilt import SENTENCE
from tolsey.storage.limits import Policy

routes = Blueprint("intelligence", __name__, url_prefix="/api/intelligence")


@routes.get("/stores")
@routes.get("/stores/<domain>")
@routes.get("/stores/<domain>/products")
@routes.get("/stores/<domain>/snapshots")
@routes.get("/stores/<domain>/velocity")
@routes.get("/stores/<domain>/technologies")
@routes.get("/compare")
@routes.get("/changes")
@routes.get("/scans/<scan_id>")
@routes.get("/usage")
@api_key("intelligence:read")
async def read(**_: str) -> Response:
    """Read what is known of stores."""
    await _count()
    raise NotBuilt(SENTENCE)


@routes.post("/scans")
@api_key("intelligence:write")
async def scan() -> Response:
    """Have a store scanned."""
    await _count(*policies.scans(plans.BY_CODE[key_holder().plan]))
    raise NotBuilt(SENTENCE)


async def _count(*more: Policy) -> None:
    """Count a call against the plan of the organization, whichever of its keys makes it."""
    holder = key_holder()
    plan = policies.intelligence(plans.BY_CODE[holder.plan])
    await limits.admit(*plan, *more, whose=limits.of_organization(holder.organization_id))
