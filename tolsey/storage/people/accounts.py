"""SQL for users and organizations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tolsey.storage import audit
from tolsey.storage.database import Database, Row, Transaction
from tolsey.storage.lookups import record
from tolsey.storage.records.people import UserRow
from tolsey.storage.tables import table_of

ORGANIZATION = "organizations.id, organizations.name, plan, rules, organizations.created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationRow:
    """An organization, with the role of whom it was read for."""

    id: str
    name: str
    plan: str
    rules: dict[str, Any]
    created_at: datetime
    role: str


USERS: Final = table_of(UserRow)


def _organization(row: Row) -> OrganizationRow:
    rules = json.loads(row["rules"])
    return OrganizationRow(
        id=row["id"],
        name=row["name"],
        plan=row["plan"],
        rules=rules,
        created_at=row["created_at"],
        role=row["role"],
    )


async def find_user(database: Database, email: str) -> UserRow | None:
    """Find a user by their e-mail address, which is kept in lower case."""
    return await record(database, USERS, "email = $1", email)


async def create_user(
    tx: Transaction, user_id: str, email: str, password_hash: str, at: datetime
) -> bool:
    """Add a user; False when the e-mail address is taken."""
    status = await tx.execute(
        """
        INSERT INTO users (id, email, password_hash, created_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING
        """,
        user_id,
        email,
        password_hash,
        at,
    )
    return bool(status == "INSERT 0 1")


async def set_language(tx: Transaction, user_id: str, language: str) -> None:
    """Keep in which language a user reads."""
    await tx.execute(
        "UPDATE users SET language = $2 WHERE id = $1 AND language IS DISTINCT FROM $2",
        user_id,
        language,
    )


async def inbox_seen_at(database: Database, user_id: str) -> datetime | None:
    """Tell until when a user has seen what wants them."""
    row = await database.fetchrow("SELECT inbox_seen_at FROM users WHERE id = $1", user_id)
    return row["inbox_seen_at"] if row else None


async def see_inbox(tx: Transaction, user_id: str, at: datetime) -> None:
    """Keep that a user has seen what wants them until now."""
    await tx.execute("UPDATE users SET inbox_seen_at = $2 WHERE id = $1", user_id, at)


async def set_password_hash(tx: Transaction, user_id: str, password_hash: str) -> None:
    """Replace a user's password hash."""
    await tx.execute("UPDATE users SET password_hash = $2 WHERE id = $1", user_id, password_hash)


async def create_organization(
    tx: Transaction, organization_id: str, name: str, owner_id: str, at: datetime
) -> None:
    """Add an organization with its first owner; a second call with the same id adds nothing."""
    status = await tx.execute(
        """
        INSERT INTO organizations (id, name, created_at)
        VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING
        """,
        organization_id,
        name,
        at,
    )
    if status != "INSERT 0 1":
        return
    await tx.execute(
        """
        INSERT INTO members (organization_id, user_id, role, created_at)
        VALUES ($1, $2, 'owner', $3)
        """,
        organization_id,
        owner_id,
        at,
    )
    await audit.write(
        tx, "organization.created", organization_id, organization_id=organization_id, actor=owner_id
    )


async def owned_by(database: Database, user_id: str) -> list[str]:
    """List the ids of the organizations that a user is an owner of."""
    rows = await database.fetch(
        "SELECT organization_id FROM members WHERE user_id = $1 AND role = 'owner' ORDER BY 1",
        user_id,
    )
    return [row["organization_id"] for row in rows]


async def names_of(database: Database, organization_ids: Sequence[str]) -> dict[str, str]:
    """Read what organizations are called; one that is gone has no name."""
    rows = await database.fetch(
        "SELECT id, name FROM organizations WHERE id = ANY($1::text[])", list(organization_ids)
    )
    known = {row["id"]: row["name"] for row in rows}
    return {id: known.get(id, "") for id in organization_ids}


async def organizations_of(
    database: Database, user_id: str, after: str, limit: int
) -> list[OrganizationRow]:
    """List organizations a user belongs to, by id."""
    rows = await database.fetch(
        f"""
        SELECT {ORGANIZATION}, role
        FROM organizations
        JOIN members ON members.organization_id = organizations.id
        WHERE members.user_id = $1 AND organizations.id > $2
        ORDER BY organizations.id LIMIT $3
        """,  # noqa: S608 - a constant list of columns
        user_id,
        after,
        limit,
    )
    return [_organization(row) for row in rows]


async def find_organization(
    database: Database, organization_id: str, user_id: str
) -> OrganizationRow | None:
    """Find an organization for one of its members; None for anyone else."""
    row = await database.fetchrow(
        f"""
        SELECT {ORGANIZATION}, role
        FROM organizations
        JOIN members ON members.organization_id = organizations.id
        WHERE organizations.id = $1 AND members.user_id = $2
        """,  # noqa: S608 - a constant list of columns
        organization_id,
        user_id,
    )
    return _organization(row) if row else None


async def role_in(database: Database, user_id: str, organization_id: str) -> str | None:
    """Tell a user's role in an organization; None when they have none."""
    row = await database.fetchrow(
        "SELECT role FROM members WHERE organization_id = $1 AND user_id = $2",
        organization_id,
        user_id,
    )
    return row["role"] if row else None


async def rename_organization(
    database: Database, organization_id: str, name: str, actor: str
) -> None:
    """Give an organization another name."""
    async with database.transaction() as tx:
        await tx.execute("UPDATE organizations SET name = $2 WHERE id = $1", organization_id, name)
        await audit.write(
            tx,
            "organization.renamed",
            organization_id,
            organization_id=organization_id,
            actor=actor,
        )


async def replace_rules(
    database: Database, organization_id: str, rules: Mapping[str, Any], actor: str
) -> None:
    """Keep an organization's rules whole, in place of the former ones."""
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE organizations SET rules = $2::jsonb WHERE id = $1",
            organization_id,
            json.dumps(rules),
        )
        await audit.write(
            tx,
            "organization.rules_replaced",
            organization_id,
            organization_id=organization_id,
            actor=actor,
        )
