"""Accounts, stores and their connections as answers show them."""

from datetime import UTC, datetime
from typing import Any

from tolsey.storage.people.accounts import OrganizationRow, UserRow
from tolsey.storage.people.members import MemberRow
from tolsey.storage.people.tokens import OpenSession


def timestamp(at: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user_view(user: UserRow) -> dict[str, Any]:
    """Show a user to themselves."""
    return {"id": user.id, "email": user.email, "createdAt": timestamp(user.created_at)}


def session_view(session: OpenSession) -> dict[str, Any]:
    """Show a session to its user."""
    return {
        "id": session.id,
        "device": session.device,
        "place": session.place,
        "createdAt": timestamp(session.created_at),
        "lastUsedAt": timestamp(session.used_at),
        "expiresAt": timestamp(session.expires_at),
        "current": session.current,
    }


def organization_view(organization: OrganizationRow) -> dict[str, Any]:
    """Show an organization to one of its members, with their role."""
    return {
        "id": organization.id,
        "name": organization.name,
        "plan": organization.plan,
        "role": organization.role,
        "rules": organization.rules,
        "createdAt": timestamp(organization.created_at),
    }


def member_view(member: MemberRow) -> dict[str, Any]:
    """Show a member to the others."""
    return {
        "id": member.user_id,
        "email": member.email,
        "role": member.role,
        "createdAt": timestamp(member.created_at),
    }
