"""SQL for sessions: a token is 32 random bytes, and only its SHA-256 is kept."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from tolsey.storage.database import Database, Transaction
from tolsey.storage.sealing.sealed import fingerprint

SESSION_LIFETIME = timedelta(days=30)
IDLE_LIFETIME = timedelta(days=14)
"""A session that was not used for so long is over (rules/accounts#sessions)."""
NOTED_EVERY = timedelta(hours=1)
"""How exactly it is known when a session was used last: no request but one an hour writes."""
TOKEN_BYTES = 32
TOKEN_CHARACTERS = 128
LISTED = 200
DEVICE_CHARACTERS = 200

ID = "substr(encode(sha256(token_hash), 'hex'), 1, 32)"
"""What a session is called by to its user: it is no way back to the token."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Who a session belongs to."""

    user_id: str
    email: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """A session as its user sees it: by what and from where it was begun, and when it was used last."""

    id: str
    device: str | None
    place: str | None
    created_at: datetime
    used_at: datetime
    expires_at: datetime
    current: bool


async def begin(
    tx: Transaction, user_id: str, at: datetime, *, device: str = "", place: str = ""
) -> str:
    """Open a session for a user; answer with its token, which is kept nowhere."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    await tx.execute(
        """
        INSERT INTO sessions (token_hash, user_id, created_at, expires_at, used_at, device, place)
        VALUES ($1, $2, $3, $4, $3, $5, $6)
        """,
        fingerprint(token),
        user_id,
        at,
        at + SESSION_LIFETIME,
        device[:DEVICE_CHARACTERS] or None,
        place or None,
    )
    return token


async def find(database: Database, token: str, at: datetime) -> SessionRow | None:
    """Find who a token belongs to, and note that it was used.

    Banned users and users in deletion have no session, and who was away for 14 days has none left.
    """
    if len(token) > TOKEN_CHARACTERS:
        return None
    row = await database.fetchrow(
        """
        SELECT users.id, users.email, sessions.expires_at,
               coalesce(sessions.used_at, sessions.created_at) AS used_at
        FROM sessions
        JOIN users ON users.id = sessions.user_id
        WHERE sessions.token_hash = $1
          AND sessions.expires_at > $2
          AND coalesce(sessions.used_at, sessions.created_at) > $3
          AND NOT users.banned
          AND users.deletion_requested_at IS NULL
        """,
        fingerprint(token),
        at,
        at - IDLE_LIFETIME,
    )
    if row is None:
        return None
    if row["used_at"] < at - NOTED_EVERY:
        await database.execute(
            "UPDATE sessions SET used_at = $2 WHERE token_hash = $1", fingerprint(token), at
        )
    return SessionRow(row["id"], row["email"], row["expires_at"])


async def open_sessions(
    database: Database, user_id: str, token: str, at: datetime
) -> list[OpenSession]:
    """List a user's sessions that are not over, the one of a token among them, newest first."""
    rows = await database.fetch(
        f"""
        SELECT {ID} AS id, device, place, created_at, coalesce(used_at, created_at) AS used_at,
               least(expires_at, coalesce(used_at, created_at) + $5::interval) AS expires_at,
               token_hash = $2 AS current
        FROM sessions
        WHERE user_id = $1 AND expires_at > $3
          AND coalesce(used_at, created_at) > $3 - $5::interval
        ORDER BY created_at DESC LIMIT $4
        """,  # noqa: S608 - an expression of this file
        user_id,
        fingerprint(token),
        at,
        LISTED,
        IDLE_LIFETIME,
    )
    return [OpenSession(**row) for row in rows]


async def end_one(tx: Transaction, user_id: str, session_id: str) -> bool:
    """Delete a session of a user by what it is called; False when they have no such session."""
    status = await tx.execute(
        f"DELETE FROM sessions WHERE user_id = $1 AND {ID} = $2",  # noqa: S608 - an expression of this file
        user_id,
        session_id,
    )
    return bool(status == "DELETE 1")


async def end_others(tx: Transaction, user_id: str, token: str) -> None:
    """Delete every session of a user but the one of a token."""
    await tx.execute(
        "DELETE FROM sessions WHERE user_id = $1 AND token_hash <> $2", user_id, fingerprint(token)
    )


async def end(tx: Transaction, token: str) -> str | None:
    """Delete a session; answer with whose it was."""
    user_id: str | None = await tx.fetchval(
        "DELETE FROM sessions WHERE token_hash = $1 RETURNING user_id", fingerprint(token)
    )
    return user_id


async def end_all(tx: Transaction, user_id: str) -> None:
    """Delete every session of a user."""
    await tx.execute("DELETE FROM sessions WHERE user_id = $1", user_id)
