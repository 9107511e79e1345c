"""SQL for the administrators' organization and who is in it."""

from dataclasses import dataclass
from datetime import UTC, datetime

import uuid_utils

from tolsey.storage import audit
from tolsey.storage.database import Database, Transaction
from tolsey.storage.errors import StorageError
from tolsey.storage.oauth import grants
from tolsey.storage.people import accounts, api_keys, passwords, tokens

NAME = "Administrators"


@dataclass(frozen=True, slots=True)
class Administrator:
    """Who may now administer, and where."""

    user_id: str
    organization_id: str
    is_new: bool


class WrongAccount(StorageError):  # noqa: N818 - what is wrong
    """A new administrator has an account already, or one who should have has none."""

    def __init__(self, email: str, *, is_new: bool) -> None:
        super().__init__(
            f"There is no account {email}. Leave out --existing to create one."
            if is_new
            else f"{email} has an account already: with --existing it is made an administrator,"
            " its password is set anew, and its sessions and agents end."
        )


async def organization_id(database: Database, configured: str | None) -> str | None:
    """Tell which organization administers: the configured one, else the one that was made."""
    if configured is not None:
        return configured
    row = await database.fetchrow("SELECT id FROM organizations WHERE is_administrators")
    return row["id"] if row else None


async def create_administrator(
    database: Database,
    email: str,
    password: str,
    *,
    configured: str | None = None,
    existing: bool | None = None,
) -> Administrator:
    """Make an administrator, and the administrators' organization when there is none.

    A user who exists already gets the new password, and every session and agent of theirs ends:
    whoever runs this holds the database, so it is also the way back in. Raises WrongAccount when
    `existing` says otherwise than is so.
    """
    password_hash = await passwords.hash_password(password)
    at = datetime.now(UTC)
    async with database.transaction() as tx:
        user_id, is_new = await _user(tx, email.strip().lower(), password_hash, at)
        if existing is not None and existing == is_new:
            raise WrongAccount(email, is_new=is_new)
        chosen = await _organization(tx, configured, user_id, at)
        await tx.execute(
            """
            INSERT INTO members (organization_id, user_id, role, created_at)
            VALUES ($1, $2, 'admin', $3)
            ON CONFLICT (organization_id, user_id) DO UPDATE SET role = 'admin'
            WHERE members.role = 'member'
            """,
            chosen,
            user_id,
            at,
        )
        await audit.write(
            tx,
            "administrator.created",
            user_id,
            organization_id=chosen,
            actor="operator",
            reason="tolsey admin create" if is_new else "tolsey admin create --existing",
        )
    return Administrator(user_id, chosen, is_new)


async def _user(tx: Transaction, email: str, password_hash: str, at: datetime) -> tuple[str, bool]:
    user_id = f"usr_{uuid_utils.uuid7().hex}"
    if await accounts.create_user(tx, user_id, email, password_hash, at):
        return user_id, True
    known: str = await tx.fetchval("SELECT id FROM users WHERE email = $1", email)
    await accounts.set_password_hash(tx, known, password_hash)
    await tokens.end_all(tx, known)
    await grants.end_all(tx, known, "password", actor="operator", at=at)
    await api_keys.end_all(tx, known, actor="operator", at=at)
    return known, False


async def _organization(
    tx: Transaction, configured: str | None, owner_id: str, at: datetime
) -> str:
    # Two of these at once would make two organizations; the lock lets the second one find the first.
    await tx.execute("SELECT pg_advisory_xact_lock(hashtext('tolsey.administrators'))")
    found: str | None = await tx.fetchval(
        """
        SELECT id FROM organizations
        WHERE id = $1::text OR ($1::text IS NULL AND is_administrators)
        """,
        configured,
    )
    if found is not None:
        return found
    made = configured or f"org_{uuid_utils.uuid7().hex}"
    await accounts.create_organization(tx, made, NAME, owner_id, at)
    await tx.execute(
        """
        UPDATE organizations SET is_administrators = true
        WHERE id = $1 AND NOT EXISTS (SELECT FROM organizations WHERE is_administrators)
        """,
        made,
    )
    return made
