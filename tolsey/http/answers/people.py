"""Users, their sessions, and the organizations they belong to."""

from typing import Any, Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.people.members import MemberRow


class OrganizationAnswer(ApiAnswer):
    """An organization as one of its members sees it, with their role; `rules` are kept whole."""

    id: str
    name: str
    plan: str
    role: str
    rules: dict[str, Any]
    created_at: Timestamp

    @classmethod
    def of(cls, organization: OrganizationRow) -> Self:
        """Show an organization to whom it was read for."""
        return cls(
            id=organization.id,
            name=organization.name,
            plan=organization.plan,
            role=organization.role,
            rules=organization.rules,
            created_at=organization.created_at,
        )


class MemberAnswer(ApiAnswer):
    """A member, as shown to the others."""

    id: str
    email: str
    role: str
    created_at: Timestamp

    @classmethod
    def of(cls, member: MemberRow) -> Self:
        """Show a member."""
        return cls(
            id=member.user_id,
            email=member.email,
            role=member.role,
            created_at=member.created_at,
        )
