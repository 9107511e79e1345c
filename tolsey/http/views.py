"""Accounts, stores and their connections as answers show them."""

from datetime import UTC, datetime
from typing import Any

from tolsey.storage.people.accounts import OrganizationRow, UserRow
from tolsey.storage.people.members import MemberRow


def timestamp(at: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user_view(user: UserRow) -> dict[str, Any]:
    """Show a user to themselves."""
    return {"id": user.id, "email": user.email, "createdAt": timestamp(user.created_at)}


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
