"""Who belongs to an organization: what the API and the pages do alike (rules/accounts#members)."""

from contextlib import suppress
from typing import Final, Literal

from tolsey.actors.mail import MailEvent
from tolsey.actors.refusals import Conflict, Forbidden, NotFound, Refusal
from tolsey.http.layout.catalogue import marked
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of, organization_of
from tolsey.http.web.api_model import ApiModel, Email
from tolsey.http.web.context import now, service
from tolsey.runtime.ids import new_id
from tolsey.storage.people import accounts, invitations, members
from tolsey.storage.people import mail as mails
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.people.invitations import InvitationRow, TooManyOpen
from tolsey.storage.people.members import MemberRow, Removal
from tolsey.storage.records.people import InvitationState
from tolsey.storage.sealing.sealed import fingerprint

PATH: Final = "/invitations"
OVER: Final[dict[InvitationState, str]] = {
    "accepted": marked("This invitation was accepted. It works once."),
    "expired": marked("This invitation is older than 7 days. Ask for a new one."),
    "replaced": marked(
        "A newer invitation took this one's place. Open the link of the latest mail."
    ),
    "withdrawn": marked("This invitation was withdrawn. Ask whoever sent it."),
}


class MemberBody(ApiModel):
    """Who is wanted, and as what."""

    email: Email
    role: Literal["owner", "admin", "member"]


class InvitationOver(Refusal):
    """An invitation works no more; `state` says why."""

    status = 410
    code = "invitation_over"

    def __init__(self, state: InvitationState) -> None:
        super().__init__(OVER[state], state=state)


class WrongAddress(Forbidden):
    """An invitation is for another address than that of who is signed in."""

    code = "wrong_address"

    def __init__(self) -> None:
        super().__init__(
            marked("This invitation was sent to another email address. Sign in with that address.")
        )


async def invite(organization_id: str, wanted: MemberBody) -> InvitationRow | MemberRow:
    """Invite an address by mail, whoever has it, or give a member another role; 403, 409, 429, 503."""
    await _require_rank(organization_id, wanted.role)
    known = await members.find_member(service().database, organization_id, wanted.email)
    if known is not None:
        return await _change_role(organization_id, known, wanted.role)
    service().mail.require()
    await limits.admit(policies.INVITATIONS)
    one = f"{organization_id}:{fingerprint(wanted.email).hex()}"
    await limits.admit(policies.INVITATIONS_OF_ONE, whose=f"invited:{one}")
    return await _write(await organization_of(organization_id), wanted)


async def _write(organization: OrganizationRow, wanted: MemberBody) -> InvitationRow:
    """Keep an invitation, and its mail with it."""
    running, inviter = service(), caller()
    try:
        async with running.database.transaction() as tx:
            made = await invitations.begin(
                tx,
                new_id("inv"),  # a new one each time: the token of an earlier attempt is lost
                organization_id=organization.id,
                email=wanted.email,
                role=wanted.role,
                invited_by=inviter.user_id,
                at=now(),
            )
            if made is None:
                raise Forbidden(
                    "Your role no longer lets you invite members. Ask an owner or admin to"
                    " invite them."
                )
            invitation, token = made
            await running.mail.write(
                tx,
                MailEvent.INVITED,
                wanted.email,
                about=invitation.id,
                facts={
                    "inviter": inviter.email,
                    "organization": organization.name,
                    "role": wanted.role,
                },
                link=f"{running.settings.base_url}{PATH}/{token}",
                organization_id=organization.id,
            )
    except TooManyOpen as error:
        raise Conflict(
            f"{invitations.MOST_OPEN} invitations are pending, the maximum. Withdraw some of them first.",
            code="too_many_invitations",
        ) from error
    return InvitationRow(invitation, organization.name, inviter.email)


async def _change_role(organization_id: str, known: MemberRow, role: str) -> MemberRow:
    await _require_rank(organization_id, known.role)
    outcome = await members.set_role(
        service().database, organization_id, known.user_id, role, caller().user_id
    )
    _refuse(outcome)
    await service().agents.access_tokens.forget()  # their agents may do what their role allows
    return MemberRow(
        user_id=known.user_id, email=known.email, role=role, created_at=known.created_at
    )


async def remove(organization_id: str, user_id: str) -> None:
    """Remove a member; anyone may leave, and the last owner must stay; 403, 404, 409."""
    await member_of(organization_id)
    if user_id != caller().user_id:
        role = await accounts.role_in(service().database, user_id, organization_id)
        await _require_rank(organization_id, role or "member")
    outcome = await members.remove(service().database, organization_id, user_id, caller().user_id)
    _refuse(outcome)
    await service().agents.access_tokens.forget()


async def _require_rank(organization_id: str, role: str) -> None:
    # Owners and admins decide who belongs; only owners make owners, and unmake them (rules/accounts#members).
    await member_of(organization_id, at_least="owner" if role == "owner" else "admin")


def _refuse(outcome: Removal) -> None:
    if outcome is Removal.LAST_OWNER:
        raise Conflict(
            "An organization must have at least one owner. Make another member an owner first.",
            code="last_owner",
        )
    if outcome is Removal.ABSENT:
        raise NotFound(
            "This member doesn't exist or has left the organization. Reload the list of members."
        )


async def withdraw(organization_id: str, invitation_id: str) -> None:
    """Withdraw an invitation that waits, and its mail if that is not sent yet; 403, 404."""
    await member_of(organization_id, at_least="admin")
    at = now()
    async with service().database.transaction() as tx:
        if not await invitations.withdraw(tx, organization_id, invitation_id, caller().user_id, at):
            raise NotFound(
                "This invitation doesn't exist or is no longer pending. Reload the list of"
                " invitations."
            )
        await mails.give_up(tx, MailEvent.INVITED, invitation_id, answer="withdrawn", at=at)


async def find_invitation(token: str) -> InvitationRow:
    """Find the invitation of a token while it works; 404, and 410 once it is over."""
    found = await invitations.find(service().database, token)
    if found is None:
        raise NotFound(
            "This invitation link is invalid. Open the link in the invitation email again."
        )
    state = found.invitation.state_at(now())
    if state != "open":
        raise InvitationOver(state)
    return found


async def invited_address(path: str) -> str | None:
    """Tell the address of the invitation whose page a path leads to; None for any other path."""
    token = path.removeprefix(f"{PATH}/")
    with suppress(NotFound, InvitationOver):
        if token != path:
            return (await find_invitation(token)).invitation.email
    return None


async def accept(token: str) -> OrganizationRow:
    """Join by an invitation, once, as who it is for; 403, 404, 410, 429."""
    await limits.admit(policies.INVITATIONS_ACCEPTED)
    found = await find_invitation(token)
    # Whoever has the link without the mailbox is somebody else: the address must be the account's.
    if found.invitation.email != caller().email:
        raise WrongAddress
    async with service().database.transaction() as tx:
        is_done = await invitations.accept(tx, found.invitation, caller().user_id, now())
    organization = is_done and await accounts.find_organization(
        service().database, found.invitation.organization_id, caller().user_id
    )
    if not organization:  # another request was faster, or took it away
        await find_invitation(token)
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    return organization
