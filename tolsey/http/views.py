"""Accounts, stores and their connections as answers show them."""

from datetime import UTC, datetime
from typing import Any

from tolsey.actors.store.messages import ConnectionView, TokenState
from tolsey.storage.people.accounts import OrganizationRow, UserRow
from tolsey.storage.people.members import MemberRow
from tolsey.storage.records.commerce.connection import PROVIDER


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


def store_view(
    store_id: str, organization_id: str, name: str, created_at: datetime
) -> dict[str, Any]:
    """Show a store to its members."""
    return {
        "id": store_id,
        "organizationId": organization_id,
        "name": name,
        "createdAt": timestamp(created_at),
    }


def connection_view(view: ConnectionView | None) -> dict[str, Any]:
    """Show a store's connection, without any secret; one that never was has no status."""
    return {
        "provider": PROVIDER,
        "shopDomain": view.shop_domain if view else None,
        "status": view.status if view else None,
        "scopes": list(view.scopes) if view else [],
        "scopesKnown": bool(view and view.scopes_known),
        "tokenState": view.token_state if view else TokenState.NEVER,
        "connectedAt": timestamp(view.connected_at) if view else None,
        "uninstalledAt": timestamp(view.uninstalled_at) if view else None,
    }
