"""Joining an organization by the link of an invitation (rules/accounts#members)."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.http.answers.people.members import OrganizationAnswer
from tolsey.http.people import memberships
from tolsey.http.web.access import session

routes = Blueprint("invitations", __name__, url_prefix="/api/invitations")
tag_blueprint(routes, ["Organizations"])


@routes.post("/<token>/accept")
@session
async def accept_invitation(token: str) -> OrganizationAnswer:
    """Join the organization of an invitation that was sent to the caller's address."""
    return OrganizationAnswer.read(await memberships.accept(token))
