"""SQL for who belongs to an organization, and in which role."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tolsey.storage import audit
from tolsey.storage.database import Database, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A member of an organization."""

    user_id: str
    email: str
    role: str
    created_at: datetime


class Removal(StrEnum):
    """What became of a wish to remove a member, or to lower their role."""

    DONE = "done"
    ABSENT = "absent"
    LAST_OWNER = "last_owner"


async def members_of(database: Database, organization_id: str) -> list[MemberRow]:
    """List the members of an organization, oldest first."""
    rows = await database.fetch(
        """
        SELECT members.user_id, users.email, members.role, members.created_at
        FROM members JOIN users ON users.id = members.user_id
        WHERE members.organization_id = $1
        ORDER BY members.created_at, members.user_id
        LIMIT 1000
        """,
        organization_id,
    )
    return [MemberRow(**row) for row in rows]


async def page_of(
    database: Database, organization_id: str, after: str, limit: int
) -> list[MemberRow]:
    """List a part of the members of an organization, by the age of their accounts."""
    rows = await database.fetch(
        """
        SELECT members.user_id, users.email, members.role, members.created_at
        FROM members JOIN users ON users.id = members.user_id
        WHERE members.organization_id = $1 AND members.user_id > $2
        ORDER BY members.user_id LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [MemberRow(**row) for row in rows]


async def one_of(database: Database, organization_id: str, user_id: str) -> MemberRow | None:
    """Read one member of an organization."""
    row = await database.fetchrow(
        """
        SELECT members.user_id, users.email, members.role, members.created_at
        FROM members JOIN users ON users.id = members.user_id
        WHERE members.organization_id = $1 AND members.user_id = $2
        """,
        organization_id,
        user_id,
    )
    return MemberRow(**row) if row else None


async def find_member(database: Database, organization_id: str, email: str) -> MemberRow | None:
    """Find the member who has an address."""
    row = await database.fetchrow(
        """
        SELECT members.user_id, users.email, members.role, members.created_at
        FROM members JOIN users ON users.id = members.user_id
        WHERE members.organization_id = $1 AND users.email = $2
        """,
        organization_id,
        email,
    )
    return MemberRow(**row) if row else None


async def hold(tx: Transaction, organization_id: str) -> None:
    """Let nobody else change who belongs to an organization, or is invited, until the commit."""
    await tx.execute("SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE", organization_id)


async def _is_last_owner(tx: Transaction, organization_id: str, user_id: str) -> bool:
    """Tell whether someone is the only owner, holding the organization until the commit."""
    # Two owners who remove each other at once queue up.
    await hold(tx, organization_id)
    rows = await tx.fetch(
        "SELECT user_id FROM members WHERE organization_id = $1 AND role = 'owner'",
        organization_id,
    )
    return [row["user_id"] for row in rows] == [user_id]


async def add(
    tx: Transaction,
    organization_id: str,
    user_id: str,
    role: str,
    *,
    invitation: str,
    at: datetime,
) -> None:
    """Make someone a member by their invitation; who is one already keeps their role."""
    status = await tx.execute(
        """
        INSERT INTO members (organization_id, user_id, role, created_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (organization_id, user_id) DO NOTHING
        """,
        organization_id,
        user_id,
        role,
        at,
    )
    if status == "INSERT 0 1":
        await audit.write(
            tx,
            "organization.member_added",
            user_id,
            organization_id=organization_id,
            actor=user_id,
            role=role,
            invitation=invitation,
        )


async def set_role(
    database: Database, organization_id: str, user_id: str, role: str, actor: str
) -> Removal:
    """Give a member another role; the last owner stays one."""
    async with database.transaction() as tx:
        if await _is_last_owner(tx, organization_id, user_id) and role != "owner":
            return Removal.LAST_OWNER
        changed = await tx.execute(
            "UPDATE members SET role = $3 WHERE organization_id = $1 AND user_id = $2",
            organization_id,
            user_id,
            role,
        )
        if changed == "UPDATE 0":
            return Removal.ABSENT
        await audit.write(
            tx,
            "organization.role_changed",
            user_id,
            organization_id=organization_id,
            actor=actor,
            role=role,
        )
    return Removal.DONE


async def remove(database: Database, organization_id: str, user_id: str, actor: str) -> Removal:
    """Remove a member, unless they are the last owner."""
    async with database.transaction() as tx:
        if await _is_last_owner(tx, organization_id, user_id):
            return Removal.LAST_OWNER
        gone = await tx.execute(
            "DELETE FROM members WHERE organization_id = $1 AND user_id = $2",
            organization_id,
            user_id,
        )
        if gone == "DELETE 0":
            return Removal.ABSENT
        await audit.write(
            tx, "organization.member_removed", user_id, organization_id=organization_id, actor=actor
        )
    return Removal.DONE
