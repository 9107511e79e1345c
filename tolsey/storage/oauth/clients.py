"""SQL for clients that registered themselves (RFC 7591)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database, Transaction

INSERT: Final = """
INSERT INTO oauth_clients (id, name, redirect_uris, auth_method, secret_hash, created_at, used_at)
VALUES ($1, $2, $3, $4, $5, $6, $6)
"""
FIND: Final = """
SELECT id, name, redirect_uris, auth_method, secret_hash FROM oauth_clients WHERE id = $1
"""
TRIM: Final = """
DELETE FROM oauth_clients WHERE id IN (
    SELECT id FROM oauth_clients WHERE used_at = created_at
    ORDER BY created_at DESC OFFSET $1)
"""
MOST_UNUSED: Final = 10_000
"""How many clients are kept that never came with a code: what registering can cost us at most."""
USED: Final = """
UPDATE oauth_clients SET used_at = $2
WHERE id = $1 AND (used_at = created_at OR used_at < $2::timestamptz - interval '1 hour')
"""
"""The first use counts, however early: a client that was never used is let go of after a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """A client; a confidential one has a secret, of which only the SHA-256 is kept."""

    id: str
    name: str
    redirect_uris: Sequence[str]
    auth_method: str
    secret_hash: bytes | None


async def add(database: Database, client: ClientRow, at: datetime) -> None:
    """Keep a new client, and of those that were never used only the newest."""
    await database.execute(
        INSERT,
        client.id,
        client.name,
        list(client.redirect_uris),
        client.auth_method,
        client.secret_hash,
        at,
    )
    await database.execute(TRIM, MOST_UNUSED)


async def find(database: Database, client_id: str) -> ClientRow | None:
    """Find a client; None when it never was, or was let go of."""
    row = await database.fetchrow(FIND, client_id)
    return ClientRow(**row) if row else None


async def use(tx: Transaction, client_id: str, at: datetime) -> None:
    """Note that a client is in use, so that it is not let go of."""
    await tx.execute(USED, client_id, at)


async def names_of(database: Database, client_ids: Sequence[str]) -> Mapping[str, str]:
    """Name clients that registered themselves; one that was let go of is absent."""
    rows = await database.fetch(
        "SELECT id, name FROM oauth_clients WHERE id = ANY($1::text[])", list(client_ids)
    )
    return {row["id"]: row["name"] for row in rows}
