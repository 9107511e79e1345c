"""Pages of who belongs to an organization, and of an invitation to it; each form does what the API does."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal, Unprocessable
from tolsey.http.answers.base import list_of
from tolsey.http.answers.people.members import InvitationAnswer, MemberAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.answers import (
    answer_with_pages,
    filled_again,
    login_address,
    sent_on,
    sentence,
    shown,
)
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.people import memberships
from tolsey.http.people.memberships import MemberBody
from tolsey.http.web import api_model
from tolsey.http.web.access import (
    RANKS,
    caller,
    first_organization,
    identify,
    organization_of,
    page,
    public,
)
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.people import invitations, members
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.people.invitations import InvitationRow
from tolsey.storage.people.members import MemberRow

PATH: Final = "/people"
PART: Final = 50
"""How many members are on a page."""

routes = Blueprint("member_pages", __name__)
answer_with_pages(routes)


def address(organization_id: str, path: str = PATH, **more: str) -> str:
    """Give the address of the people of an organization, or of one of them, with what more is said."""
    said = {"organizationId": organization_id, **{name: one for name, one in more.items() if one}}
    return f"{path}?{urlencode(said)}"


def roles() -> Mapping[str, str]:
    """Say what each role is called, the least first."""
    return {"member": _("Member"), "admin": _("Admin"), "owner": _("Owner")}


@dataclass(frozen=True, kw_only=True)
class OrganizationPage(Page):
    """A page of an organization, as one of its members sees it."""

    organization: OrganizationRow
    you: str

    @property
    def may_act(self) -> bool:
        """Whether the reader decides who belongs."""
        return RANKS[self.organization.role] >= RANKS["admin"]

    @property
    def roles(self) -> Mapping[str, str]:
        """The roles that the reader may give, the least first."""
        own = RANKS[self.organization.role]
        return {role: name for role, name in roles().items() if RANKS[role] <= own}

    @property
    def names(self) -> Mapping[str, str]:
        """What each role is called."""
        return roles()

    def may_change(self, member: MemberAnswer) -> bool:
        """Whether the reader may give someone another role, or remove them."""
        own = member.id == self.you
        return own or (self.may_act and RANKS[member.role] <= RANKS[self.organization.role])

    def person_address(self, user_id: str) -> str:
        """Give the address of one member's page."""
        return address(self.organization.id, f"{PATH}/{user_id}")

    @property
    def address(self) -> str:
        """Give the address of the page of all."""
        return address(self.organization.id)


@dataclass(frozen=True, kw_only=True)
class PeoplePage(OrganizationPage):
    """Who belongs to an organization, and who is invited."""

    template = "people/people.html"
    members: Sequence[MemberAnswer]
    following: str | None
    """The cursor of those who come after these."""
    invitations: Sequence[InvitationAnswer]
    filled: Filled = field(default_factory=Filled)
    done: str = ""
    refused: str = ""
    email_characters = api_model.EMAIL_CHARACTERS

    @property
    def next_page(self) -> str:
        """Give the address of those who come after these."""
        return address(self.organization.id, cursor=self.following or "")


@dataclass(frozen=True, kw_only=True)
class PersonPage(OrganizationPage):
    """One member: their role, and their leaving."""

    template = "people/person.html"
    member: MemberAnswer
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class InvitationPage(Page):
    """An invitation, as whoever opens its link sees it."""

    template = "people/invitation.html"
    row: InvitationRow
    path: str
    viewer: str | None

    @property
    def role(self) -> str:
        """What the role is called that it is for."""
        return roles()[self.row.invitation.role]

    @property
    def is_theirs(self) -> bool:
        """Whether its reader is signed in as who it is for."""
        return self.viewer == self.row.invitation.email

    @property
    def signup_address(self) -> str:
        """Where an account is made that leads back here."""
        return f"/signup?{urlencode({'next': self.path})}"

    @property
    def login_address(self) -> str:
        """Where one signs in, and is led back here."""
        return login_address(self.path)


@routes.get(f"{memberships.PATH}/<token>")
@public
async def show_invitation(token: str) -> Response:
    """Show an invitation while it works; to look at it accepts nothing."""
    signed_in = await identify()
    row = await memberships.find_invitation(token)
    viewer = signed_in.email if signed_in else None
    return shown(InvitationPage(row=row, path=f"{memberships.PATH}/{token}", viewer=viewer))


@routes.post(f"{memberships.PATH}/<token>/accept")
@page
async def accept_invitation(token: str) -> Response:
    """Join, and go on to who else is there."""
    organization = await memberships.accept(token)
    return sent_on(address(organization.id, done="joined"))


@routes.get(PATH)
@page
async def show_people() -> Response:
    """Show who belongs to an organization; without one named, to the caller's first."""
    wanted = request.args.get("organizationId")
    if wanted is None:
        first = await first_organization()
        return sent_on(address(first, done=request.args.get("done", "")))
    return shown(await _people(wanted, done=request.args.get("done", "")))


@routes.post(f"{PATH}/invite")
@page
async def invite() -> Response:
    """Invite an address, or give a member another role, and go back to where it shows."""
    values = await forms.sent()
    id = values.pop("organizationId", "")
    try:
        found = await memberships.invite(id, forms.read(MemberBody, values))
    except (Misfilled, Refusal) as wrong:
        return shown(await _people(id, filled=filled_again(values, wrong)), refusal=wrong)
    return sent_on(address(id, done="role" if isinstance(found, MemberRow) else "invited"))


@routes.post(f"{PATH}/invitations/<invitation_id>/withdraw")
@page
async def withdraw(invitation_id: str) -> Response:
    """Withdraw an invitation, and go back to where it showed."""
    id = await _organization_id()
    try:
        await memberships.withdraw(id, invitation_id)
    except NotFound as over:
        return shown(await _people(id, refused=sentence(over)), refusal=over)
    return sent_on(address(id, done="withdrawn"))


@routes.get(f"{PATH}/<user_id>")
@page
async def show_person(user_id: str) -> Response:
    """Show one member's role, and what would end it."""
    return shown(await _person(request.args.get("organizationId", ""), user_id))


@routes.post(f"{PATH}/<user_id>/role")
@page
async def change_role(user_id: str) -> Response:
    """Give a member another role, and go back to all."""
    id = await _organization_id()
    found = await _person(id, user_id)
    sent = {"email": found.member.email, "role": (await request.form).get("role", "")}
    try:
        wanted = forms.read(MemberBody, sent)
    except Misfilled as wrong:
        raise Unprocessable(forms.unreadable()) from wrong
    return await _acted(found, memberships.invite(id, wanted), done="role")


@routes.post(f"{PATH}/<user_id>/remove")
@page
async def remove(user_id: str) -> Response:
    """Remove a member, and go back to those who stay."""
    id = await _organization_id()
    found = await _person(id, user_id)
    done = "left" if user_id == caller().user_id else "removed"
    return await _acted(found, memberships.remove(id, user_id), done=done)


async def _acted(found: PersonPage, act: Awaitable[object], done: str) -> Response:
    """Do what was asked of a member; who left goes to another organization of theirs."""
    try:
        await act
    except Refusal as refusal:
        return shown(replace(found, refused=sentence(refusal)), refusal=refusal)
    if done == "left":
        return sent_on(f"{PATH}?done={done}")
    return sent_on(address(found.organization.id, done=done))


async def _organization_id() -> str:
    return str((await request.form).get("organizationId", ""))


async def _people(
    organization_id: str, *, filled: Filled | None = None, done: str = "", refused: str = ""
) -> PeoplePage:
    organization = await organization_of(organization_id)
    database, you = service().database, caller().user_id
    waiting: Sequence[InvitationRow] = ()
    if RANKS[organization.role] >= RANKS["admin"]:
        waiting = await invitations.listed(
            database, organization_id, now(), before="", limit=invitations.MOST_OPEN
        )
    asked = PageQuery(limit=PART, cursor=request.args.get("cursor"))
    found = await members.page_of(database, organization_id, asked.after, PART + 1)
    listed = list_of(found, PART, key=lambda one: one.user_id, answer=MemberAnswer.of)
    return PeoplePage(
        organization=organization,
        you=you,
        members=listed.items,
        following=listed.next_cursor,
        invitations=[InvitationAnswer.of(one) for one in waiting],
        filled=filled or Filled(),
        done=done,
        refused=refused,
    )


async def _person(organization_id: str, user_id: str) -> PersonPage:
    organization = await organization_of(organization_id)
    member = await members.one_of(service().database, organization_id, user_id)
    if member is None:
        raise NotFound(
            "This member doesn't exist or has left the organization. Reload the list of members."
        )
    return PersonPage(
        organization=organization, you=caller().user_id, member=MemberAnswer.of(member)
    )
