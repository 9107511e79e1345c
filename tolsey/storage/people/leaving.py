"""SQL for people who delete their account: asked for, taken back, and carried out (rules/accounts#people-who-leave)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.selling.deals import OPEN

KEPT_FOR: Final = timedelta(days=30)
"""So long an account can be restored."""
MEMORY_KEPT_FOR: Final = timedelta(days=365)
"""So long mails, chat, invitations and memory of a deleted organization are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedAlone:
    """An organization that somebody is the only owner of, and what hangs on that."""

    id: str
    has_other_members: bool
    has_open_deal: bool
    active_listings: tuple[str, ...]


async def owned_alone(database: Reader, user_id: str) -> list[OwnedAlone]:
    """List the organizations that nobody else owns."""
    rows = await database.fetch(
        f"""
        SELECT m.organization_id AS id,
            EXISTS (SELECT FROM members o WHERE o.organization_id = m.organization_id
                AND o.user_id <> $1) AS has_other_members,
            ARRAY(SELECT l.id FROM listings l WHERE l.organization_id = m.organization_id
                AND l.deleted_at IS NULL AND l.status = 'UNDER_OFFER' LIMIT 1) <> '{{}}'
              OR EXISTS (SELECT FROM deal_threads d WHERE d.seller_id = m.organization_id AND {OPEN})
              OR EXISTS (SELECT FROM deal_threads d WHERE d.buyer_id = m.organization_id AND {OPEN})
                AS has_open_deal,
            ARRAY(SELECT l.id FROM listings l WHERE l.organization_id = m.organization_id
                AND l.deleted_at IS NULL AND l.status = 'ACTIVE' ORDER BY l.id) AS active_listings
        FROM members m WHERE m.user_id = $1 AND m.role = 'owner' AND NOT EXISTS (
            SELECT FROM members o WHERE o.organization_id = m.organization_id
              AND o.user_id <> $1 AND o.role = 'owner')
        ORDER BY 1
        """,  # noqa: S608 - put together from constants
        user_id,
    )
    return [
        OwnedAlone(
            id=row["id"],
            has_other_members=row["has_other_members"],
            has_open_deal=row["has_open_deal"],
            active_listings=tuple(row["active_listings"]),
        )
        for row in rows
    ]


async def ask(tx: Transaction, user_id: str, at: datetime) -> None:
    """Write down that somebody leaves; what agents and keys may do for them ends with it."""
    await tx.execute(
        "UPDATE users SET deletion_requested_at = $2 WHERE id = $1 AND deletion_requested_at IS NULL",
        user_id,
        at,
    )


async def take_back(tx: Transaction, user_id: str) -> bool:
    """Write down that somebody stays after all; False when they had not asked to go, or are gone."""
    status: str = await tx.execute(
        "UPDATE users SET deletion_requested_at = NULL"
        " WHERE id = $1 AND deletion_requested_at IS NOT NULL AND password_hash <> ''",
        user_id,
    )
    return status == "UPDATE 1"


async def users_due(database: Reader, at: datetime) -> list[str]:
    """List who asked to go so long ago that they are to be gone."""
    rows = await database.fetch(
        "SELECT id FROM users WHERE deletion_requested_at < $1 AND deletion_requested_at IS NOT NULL"
        " AND password_hash <> '' ORDER BY deletion_requested_at",
        at - KEPT_FOR,
    )
    return [row["id"] for row in rows]


async def end_organization(database: Database, organization_id: str, at: datetime) -> list[str]:
    """Write down that an organization is deleted; answer with its stores that are open."""
    await database.execute(
        "UPDATE organizations SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL",
        organization_id,
        at,
    )
    rows = await database.fetch(
        "SELECT id FROM stores WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY id",
        organization_id,
    )
    return [row["id"] for row in rows]


async def organizations_due(database: Reader, at: datetime) -> list[str]:
    """List organizations that were deleted so long ago that nothing of their people's words is to be left."""
    rows = await database.fetch(
        "SELECT id FROM organizations WHERE deleted_at < $1 AND deleted_at IS NOT NULL AND name <> ''",
        at - MEMORY_KEPT_FOR,
    )
    return [row["id"] for row in rows]
