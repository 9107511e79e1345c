"""Sponsors pay once, and are granted nothing (rules/plans#sponsors)."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.http.answers.money.credits import UrlAnswer
from tolsey.http.billing import acts as billing
from tolsey.http.web.access import session
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.repeats.idempotency import idempotent

routes = Blueprint("sponsor", __name__, url_prefix="/api/sponsor")
tag_blueprint(routes, ["Billing"])


class Sponsorship(ApiModel):
    """Who sponsors: an organization, or the person who asks."""

    organization_id: Identifier | None = None


@routes.post("/checkout")
@session
@idempotent
async def sponsor(data: Sponsorship) -> UrlAnswer:
    """Open the processor's page on which a sponsor pays."""
    return UrlAnswer(url=await billing.sponsor(data.organization_id))
