"""SQL for sessions: a token is 32 random bytes, and only its SHA-256 is kept."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from tolsey.storage.database import Database, Transaction
from tolsey.storage.sealed import fingerprint

SESSION_LIFETIME = timedelta(days=30)
TOKEN_BYTES = 32
TOKEN_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Who a session belongs to."""

    user_id: str
    email: str
    expires_at: datetime


async def begin(tx: Transaction, user_id: str, at: datetime) -> str:
    """Open a session for a user; answer with its token, which is kept nowhere."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    await tx.execute(
        """
        INSERT INTO sessions (token_hash, user_id, created_at, expires_at)
        VALUES ($1, $2, $3, $4)
        """,
        fingerprint(token),
        user_id,
        at,
        at + SESSION_LIFETIME,
    )
    return token


async def find(database: Database, token: str, at: datetime) -> SessionRow | None:
    """Find who a token belongs to; banned users and users in deletion have no session."""
    if len(token) > TOKEN_CHARACTERS:
        return None
    row = await database.fetchrow(
        """
        SELECT users.id, users.email, sessions.expires_at
        FROM sessions
        JOIN users ON users.id = sessions.user_id
        WHERE sessions.token_hash = $1
          AND sessions.expires_at > $2
          AND NOT users.banned
          AND users.deletion_requested_at IS NULL
        """,
        fingerprint(token),
        at,
    )
    return SessionRow(row["id"], row["email"], row["expires_at"]) if row else None


async def end(tx: Transaction, token: str) -> str | None:
    """Delete a session; answer with whose it was."""
    user_id: str | None = await tx.fetchval(
        "DELETE FROM sessions WHERE token_hash = $1 RETURNING user_id", fingerprint(token)
    )
    return user_id


async def end_all(tx: Transaction, user_id: str) -> None:
    """Delete every session of a user."""
    await tx.execute("DELETE FROM sessions WHERE user_id = $1", user_id)
