"""Organizations and who belongs to them (rules/accounts#members)."""

from typing import Any

from pydantic import RootModel
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Unavailable
from tolsey.http.answers.base import Accepted, Created, ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.people.members import (
    InvitationAnswer,
    MemberAnswer,
    MemoryAnswer,
    OrganizationAnswer,
    OrganizationDetailAnswer,
    RulesAnswer,
)
from tolsey.http.clients.vectors import VectorStoreFailed
from tolsey.http.people import memberships
from tolsey.http.people.memberships import MemberBody
from tolsey.http.web.access import caller, member_of, organization_of, session
from tolsey.http.web.api_model import ApiModel, Name
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.chat import memory
from tolsey.storage.people import accounts, invitations, members
from tolsey.storage.people.members import MemberRow

routes = Blueprint("organizations", __name__, url_prefix="/api/organizations")
tag_blueprint(routes, ["Organizations"])


class OrganizationBody(ApiModel):
    """What an organization is called."""

    name: Name


class Rules(RootModel[dict[str, Any]]):
    """An organization's rules: a JSON object, kept whole."""


@routes.get("")
@session
async def list_organizations(query_args: PageQuery) -> ListAnswer[OrganizationAnswer]:
    """List the caller's organizations."""
    found = await accounts.organizations_of(
        service().database, caller().user_id, query_args.after, query_args.limit + 1
    )
    return list_of(
        found, query_args.limit, key=lambda item: item.id, answer=OrganizationAnswer.read
    )


@routes.post("")
@session
@idempotent
async def create_organization(data: OrganizationBody) -> tuple[OrganizationAnswer, Created]:
    """Make an organization that the caller owns."""
    organization_id = new_id("org")
    async with service().database.transaction() as tx:
        await accounts.create_organization(tx, organization_id, data.name, caller().user_id, now())
    return OrganizationAnswer.read(await organization_of(organization_id)), 201


@routes.get("/<organization_id>")
@session
async def get_organization(organization_id: str) -> OrganizationDetailAnswer:
    """Read an organization, with its members."""
    found = await organization_of(organization_id)
    belonging = await members.members_of(service().database, organization_id)
    return OrganizationDetailAnswer(
        **dict(OrganizationAnswer.read(found)),
        members=[MemberAnswer.of(member) for member in belonging],
    )


@routes.put("/<organization_id>")
@session
async def put_organization(organization_id: str, data: OrganizationBody) -> OrganizationAnswer:
    """Give an organization another name."""
    await member_of(organization_id, at_least="admin")
    await accounts.rename_organization(
        service().database, organization_id, data.name, caller().user_id
    )
    return OrganizationAnswer.read(await organization_of(organization_id))


@routes.put("/<organization_id>/rules")
@session
async def put_rules(organization_id: str, data: Rules) -> RulesAnswer:
    """Replace an organization's rules; the answer is the rules as they are kept."""
    await member_of(organization_id, at_least="admin")
    await accounts.replace_rules(service().database, organization_id, data.root, caller().user_id)
    return RulesAnswer(data.root)


@routes.get("/<organization_id>/memory/metrics")
@session
async def get_memory_metrics(organization_id: str) -> MemoryAnswer:
    """Count what is remembered for an organization and its stores."""
    await member_of(organization_id)
    running = service()
    counted = await memory.counts(running.database, organization_id)
    store_ids = await memory.stores_of(running.database, organization_id)
    namespaces = [name for store_id in store_ids for name in memory.namespaces_of(store_id)]
    try:
        vectors = await running.vectors.count(namespaces)
    except VectorStoreFailed as error:
        raise Unavailable(
            "The vector store is unreachable. Try again in a minute.", retryAfter=5
        ) from error
    return MemoryAnswer(
        facts=counted.facts,
        messages=counted.messages,
        vectors=vectors,
        namespaces=namespaces,
    )


@routes.post("/<organization_id>/members")
@session
@idempotent
async def invite_member(
    organization_id: str, data: MemberBody
) -> MemberAnswer | tuple[InvitationAnswer, Accepted]:
    """Invite an address by mail, whether or not it has an account; a member gets another role at once."""
    found = await memberships.invite(organization_id, data)
    if isinstance(found, MemberRow):
        return MemberAnswer.of(found)
    return InvitationAnswer.of(found), 202


@routes.delete("/<organization_id>/members/<user_id>")
@session
async def remove_member(organization_id: str, user_id: str) -> tuple[NoBody, NoContent]:
    """Remove a member; anyone may leave, and the last owner must stay."""
    await memberships.remove(organization_id, user_id)
    return "", 204


@routes.get("/<organization_id>/invitations")
@session
async def list_invitations(
    organization_id: str, query_args: PageQuery
) -> ListAnswer[InvitationAnswer]:
    """List the invitations that wait; for owners and admins."""
    await member_of(organization_id, at_least="admin")
    found = await invitations.listed(
        service().database,
        organization_id,
        now(),
        before=query_args.after,
        limit=query_args.limit + 1,
    )
    return list_of(
        found, query_args.limit, key=lambda one: one.invitation.id, answer=InvitationAnswer.of
    )


@routes.delete("/<organization_id>/invitations/<invitation_id>")
@session
async def withdraw_invitation(organization_id: str, invitation_id: str) -> tuple[NoBody, NoContent]:
    """Withdraw an invitation; its link works no more."""
    await memberships.withdraw(organization_id, invitation_id)
    return "", 204
