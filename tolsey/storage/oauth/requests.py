"""SQL for authorization requests: kept while their user decides, used once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database, Transaction
from tolsey.storage.sealing.sealed import fingerprint

INSERT: Final = """
INSERT INTO oauth_requests (
    id_hash, client_id, client_name, redirect_uri, state, code_challenge, resource, store_id,
    scopes, refusal, expires_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
"""
FIND: Final = """
SELECT client_id, client_name, redirect_uri, state, code_challenge, resource, store_id, scopes, refusal
FROM oauth_requests WHERE id_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
USE: Final = """
UPDATE oauth_requests SET used_at = $2
WHERE id_hash = $1 AND used_at IS NULL AND expires_at > $2
RETURNING client_id, client_name, redirect_uri, state, code_challenge, resource, store_id, scopes,
    refusal
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """What a client asked for, checked, as it stays until its user decides."""

    client_id: str
    client_name: str
    redirect_uri: str
    state: str | None
    code_challenge: str
    resource: str
    store_id: str
    scopes: Sequence[str]
    refusal: str | None = None
    """The address at which the client hears that this cannot be allowed, and why."""


async def keep(
    database: Database, request_id: str, wanted: RequestRow, expires_at: datetime
) -> None:
    """Keep a request under a random id, of which only the hash is kept."""
    await database.execute(
        INSERT,
        fingerprint(request_id),
        wanted.client_id,
        wanted.client_name,
        wanted.redirect_uri,
        wanted.state,
        wanted.code_challenge,
        wanted.resource,
        wanted.store_id,
        list(wanted.scopes),
        wanted.refusal,
        expires_at,
    )


async def find(database: Database, request_id: str, at: datetime) -> RequestRow | None:
    """Find a request that nobody decided yet."""
    row = await database.fetchrow(FIND, fingerprint(request_id), at)
    return RequestRow(**row) if row else None


async def use(tx: Transaction, request_id: str, at: datetime) -> RequestRow | None:
    """Use a request up; of several at once one gets it."""
    row = await tx.fetchrow(USE, fingerprint(request_id), at)
    return RequestRow(**row) if row else None
