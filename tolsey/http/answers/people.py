"""Users, their sessions, and the organizations they belong to."""

from typing import Any, Self

from pydantic import RootModel

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.people.members import MemberRow
from tolsey.storage.people.tokens import OpenSession


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
