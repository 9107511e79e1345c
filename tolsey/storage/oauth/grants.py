"""SQL for what users let clients do, and the codes and tokens that come of it.

A code and a refresh token are used up by one statement, so that of two who bring one at the same time
one gets the next; bringing it again ends the grant with all its tokens (RFC 9700, 4.5 and 4.14), but for
a refresh token that comes again within a moment, which has the same successors.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from tolsey.storage.database import Database, Transaction
from tolsey.storage.oauth.requests import RequestRow
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.sealing.sealed import base64url, fingerprint

CODE_LIFE: Final = timedelta(seconds=60)
ACCESS_LIFE: Final = timedelta(hours=1)
REFRESH_LIFE: Final = timedelta(days=30)
"""Of a refresh token that is not used; each use gives a new one."""
REFRESH_GRACE: Final = timedelta(seconds=10)
"""How long a refresh token that was used has the same successors (rules/agents#authorization)."""
SALT_BYTES: Final = 32
TOKEN_BYTES: Final = 32
TOKEN_CHARACTERS: Final = 128

Kind = Literal["access", "refresh"]
Ended = Literal["user", "client", "reuse", "password", "logout"]
"""Why a grant is ended. With a membership, a store or a user's good standing the tables end it themselves,
and it is they that write every end's audit row (migration 0020)."""

GRANT: Final = """
INSERT INTO oauth_grants (
    id, user_id, client_id, client_name, redirect_uri, organization_id, store_id, resource, scopes,
    created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
CODE: Final = """
INSERT INTO oauth_codes (code_hash, grant_id, code_challenge, expires_at) VALUES ($1, $2, $3, $4)
"""
FIND_CODE: Final = """
SELECT c.grant_id, c.code_challenge, c.expires_at, c.used_at, g.client_id, g.redirect_uri,
    g.resource, g.scopes, g.ended_at
FROM oauth_codes c JOIN oauth_grants g ON g.id = c.grant_id WHERE c.code_hash = $1
"""
USE_CODE: Final = """
UPDATE oauth_codes SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL AND expires_at > $2
"""
ISSUE: Final = """
INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5)
"""
FIND_ISSUED: Final = """
SELECT t.grant_id, t.kind, t.scopes, t.expires_at, t.used_at, t.successor_salt, g.client_id, g.user_id,
    g.resource, g.scopes AS granted, g.ended_at
FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id WHERE t.token_hash = $1
"""
ROTATE: Final = """
UPDATE oauth_tokens SET used_at = $2, successor_salt = $3
WHERE token_hash = $1 AND kind = 'refresh' AND used_at IS NULL AND expires_at > $2
"""
LAST_USED: Final = "UPDATE oauth_grants SET used_at = $2 WHERE id = $1"
END: Final = """
UPDATE oauth_grants SET ended_at = $2, why = $3, ended_by = $4
WHERE id = $1 AND ended_at IS NULL
"""
END_ALL: Final = """
UPDATE oauth_grants SET ended_at = $2, why = $3, ended_by = $4
WHERE user_id = $1 AND ended_at IS NULL
"""
ADMITTED: Final = """
SELECT g.id AS grant_id, g.user_id, g.client_id, g.store_id, g.resource, t.scopes, t.expires_at,
    o.id AS organization_id, o.plan, m.role, coalesce(k.shop_key, g.store_id) AS shop_key
FROM oauth_tokens t
JOIN oauth_grants g ON g.id = t.grant_id
JOIN users u ON u.id = g.user_id
JOIN stores s ON s.id = g.store_id
JOIN organizations o ON o.id = s.organization_id
JOIN members m ON m.organization_id = o.id AND m.user_id = g.user_id
LEFT JOIN integration_connections c ON c.store_id = g.store_id AND c.provider = 'commerce'
LEFT JOIN shops_of_stores k ON k.store_id = c.store_id AND k.shop_domain = c.shop_domain
WHERE t.token_hash = $1 AND t.kind = 'access' AND t.expires_at > $2 AND g.ended_at IS NULL
  AND s.deleted_at IS NULL AND NOT u.banned AND u.deletion_requested_at IS NULL
"""
OF_CLIENT: Final = """
SELECT DISTINCT resource FROM oauth_grants WHERE client_id = $1 AND ended_at IS NULL LIMIT 2
"""
OF_USER: Final = """
SELECT g.id, g.client_id, g.client_name, g.redirect_uri, g.store_id, s.name AS store_name, g.scopes,
    g.created_at, g.used_at
FROM oauth_grants g JOIN stores s ON s.id = g.store_id
WHERE g.user_id = $1 AND g.ended_at IS NULL ORDER BY g.created_at DESC, g.id LIMIT $2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRow:
    """A code, and the grant that it opens."""

    grant_id: str
    code_challenge: str
    expires_at: datetime
    used_at: datetime | None
    client_id: str
    redirect_uri: str
    resource: str
    scopes: Sequence[str]
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token, and the grant that it belongs to; `granted` is the most it can be used for."""

    grant_id: str
    kind: Kind
    scopes: Sequence[str]
    expires_at: datetime
    used_at: datetime | None
    successor_salt: bytes | None
    client_id: str
    user_id: str
    resource: str
    granted: Sequence[str]
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Whom an access token lets in, as they stand now: their role and plan included."""

    grant_id: str
    user_id: str
    client_id: str
    store_id: str
    resource: str
    scopes: Sequence[str]
    expires_at: datetime
    organization_id: str
    plan: str
    role: str
    shop_key: ShopKey


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A grant as its user sees it."""

    id: str
    client_id: str
    client_name: str
    redirect_uri: str
    store_id: str
    store_name: str
    scopes: Sequence[str]
    created_at: datetime
    used_at: datetime | None


async def begin(
    tx: Transaction,
    grant_id: str,
    wanted: RequestRow,
    *,
    user_id: str,
    organization_id: str,
    scopes: Sequence[str],
    at: datetime,
) -> str:
    """Write down what a user allows; answers its code, which is kept nowhere."""
    code = secrets.token_urlsafe(TOKEN_BYTES)
    await tx.execute(
        GRANT,
        grant_id,
        user_id,
        wanted.client_id,
        wanted.client_name,
        wanted.redirect_uri,
        organization_id,
        wanted.store_id,
        wanted.resource,
        list(scopes),
        at,
    )
    await tx.execute(CODE, fingerprint(code), grant_id, wanted.code_challenge, at + CODE_LIFE)
    return code


async def find_code(database: Database, code: str) -> CodeRow | None:
    """Find a code, used or not."""
    row = await database.fetchrow(FIND_CODE, fingerprint(code))
    return CodeRow(**row) if row else None


async def use_code(tx: Transaction, code: str, at: datetime) -> bool:
    """Use a code up; of several at once one does."""
    return bool(await tx.execute(USE_CODE, fingerprint(code), at) == "UPDATE 1")


async def find_token(database: Database, token: str) -> TokenRow | None:
    """Find a token, used, expired or ended as it may be."""
    if len(token) > TOKEN_CHARACTERS:
        return None
    row = await database.fetchrow(FIND_ISSUED, fingerprint(token))
    return TokenRow(**row) if row else None


async def use_token(tx: Transaction, token: str, salt: bytes, at: datetime) -> bool:
    """Use a refresh token up, and keep the salt of its successors; of several at once one does."""
    return bool(await tx.execute(ROTATE, fingerprint(token), at, salt) == "UPDATE 1")


def successor(token: str, salt: bytes, kind: Kind) -> str:
    """Make the token that follows a refresh token: the same one each time."""
    digest = hmac.new(token.encode(), salt + kind.encode(), hashlib.sha256).digest()
    return base64url(digest)


async def issue(
    tx: Transaction,
    grant_id: str,
    kind: Kind,
    scopes: Sequence[str],
    at: datetime,
    *,
    token: str | None = None,
) -> str:
    """Keep a token by its hash only, a random one if none is named; answers it."""
    token = token or secrets.token_urlsafe(TOKEN_BYTES)
    life = ACCESS_LIFE if kind == "access" else REFRESH_LIFE
    await tx.execute(ISSUE, fingerprint(token), grant_id, kind, list(scopes), at + life)
    await tx.execute(LAST_USED, grant_id, at)
    return token


async def end(tx: Transaction, grant_id: str, why: Ended, *, actor: str, at: datetime) -> bool:
    """End a grant with all its tokens; False when it had ended."""
    return bool(await tx.execute(END, grant_id, at, why, actor) == "UPDATE 1")


async def end_all(tx: Transaction, user_id: str, why: Ended, *, actor: str, at: datetime) -> bool:
    """End every grant of a user; False when there was none to end."""
    return bool(await tx.execute(END_ALL, user_id, at, why, actor) != "UPDATE 0")


async def admitted(database: Database, token: str, at: datetime) -> Admitted | None:
    """Say whom an access token lets in; None when it lets in nobody, or nobody any more."""
    if len(token) > TOKEN_CHARACTERS:
        return None
    row = await database.fetchrow(ADMITTED, fingerprint(token), at)
    return Admitted(**row) if row else None


async def only_resource(database: Database, client_id: str) -> str | None:
    """Name the one resource that a client was ever let into; None when it is none or several."""
    rows = await database.fetch(OF_CLIENT, client_id)
    return rows[0]["resource"] if len(rows) == 1 else None


async def of_user(database: Database, user_id: str, limit: int) -> list[GrantRow]:
    """List what a user lets clients do, newest first."""
    return [GrantRow(**row) for row in await database.fetch(OF_USER, user_id, limit)]
