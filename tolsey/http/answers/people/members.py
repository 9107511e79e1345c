"""Users, their sessions and API keys, and the organizations they belong to or are invited to."""

from typing import Any, Self

from pydantic import RootModel

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.people.invitations import InvitationRow
from tolsey.storage.people.members import MemberRow
from tolsey.storage.people.tokens import OpenSession
from tolsey.storage.records.people import ApiKey


class CallerAnswer(ApiAnswer):
    """Who is signed in."""

    id: str
    email: str


class UserAnswer(CallerAnswer):
    """A user, as shown to themselves."""

    created_at: Timestamp


class OrganizationAnswer(ApiAnswer):
    """An organization as one of its members sees it, with their role; `rules` are kept whole."""

    id: str
    name: str
    plan: str
    role: str
    rules: dict[str, Any]
    created_at: Timestamp


class MemberAnswer(ApiAnswer):
    """A member, as shown to the others."""

    id: str
    email: str
    role: str
    created_at: Timestamp

    @classmethod
    def of(cls, member: MemberRow) -> Self:
        """Show a member."""
        return cls.read(member, id=member.user_id)


class OrganizationDetailAnswer(OrganizationAnswer):
    """An organization with its members."""

    members: list[MemberAnswer]


class RulesAnswer(RootModel[dict[str, Any]]):
    """An organization's rules: a JSON object, kept whole."""


class MemoryAnswer(ApiAnswer):
    """How much is remembered for an organization and its stores."""

    facts: int
    messages: int
    vectors: int
    namespaces: list[str]


class SignedUpAnswer(ApiAnswer):
    """Who signed up, and the organization made for them."""

    user: UserAnswer
    organization: OrganizationAnswer


class SignedInAnswer(ApiAnswer):
    """Who signed in."""

    user: UserAnswer


class SessionAnswer(ApiAnswer):
    """Who is signed in, and the organizations they belong to."""

    user: CallerAnswer
    organizations: list[OrganizationAnswer]


class OpenSessionAnswer(ApiAnswer):
    """Where a user is signed in: device, place and last use, to the hour."""

    id: str
    device: str | None
    place: str | None
    created_at: Timestamp
    last_used_at: Timestamp
    expires_at: Timestamp
    current: bool

    @classmethod
    def of(cls, session: OpenSession) -> Self:
        """Show a session to its user."""
        return cls.read(session, last_used_at=session.used_at)


class InvitationAnswer(ApiAnswer):
    """An invitation that waits; its link is in the mail alone."""

    id: str
    organization_id: str
    email: str
    role: str
    invited_by: str
    created_at: Timestamp
    expires_at: Timestamp

    @classmethod
    def of(cls, row: InvitationRow) -> Self:
        """Show an invitation that is kept."""
        return cls.read(row.invitation, invited_by=row.inviter)


class ApiKeyAnswer(ApiAnswer):
    """A live key: by what its value begins, for what and how long it is good."""

    id: str
    organization_id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Timestamp
    expires_at: Timestamp
    last_used_at: Timestamp | None

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        """Show a key that is kept."""
        return cls.read(key, last_used_at=key.used_at)


class MadeKeyAnswer(ApiKeyAnswer):
    """A key just made, with its value; a repeat with the same `Idempotency-Key` has it no more."""

    value: str | None = None
