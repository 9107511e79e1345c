"""SQL for links that choose a new password: a token is 32 random bytes, and only its SHA-256 is kept."""

import secrets
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database, Transaction
from tolsey.storage.people.tokens import TOKEN_BYTES
from tolsey.storage.sealing.sealed import fingerprint

LIFETIME: Final = timedelta(hours=1)
PREFIX: Final = "reset_"
"""Logs mask what begins so."""


async def begin(tx: Transaction, email: str, at: datetime) -> str | None:
    """Make the token of a link for whoever has an address.

    None when no one does who may sign in, or when one was made within the last hour.
    """
    # One mail an hour (rules/accounts#passwords). The row of the user holds back a second one made meanwhile.
    user_id = await tx.fetchval(
        """
        SELECT id FROM users
        WHERE email = $1 AND NOT banned AND deletion_requested_at IS NULL FOR UPDATE
        """,
        email,
    )
    if user_id is None or await tx.fetchval(
        "SELECT true FROM password_resets WHERE user_id = $1 AND created_at > $2 LIMIT 1",
        user_id,
        at - LIFETIME,
    ):
        return None
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    await tx.execute(
        """
        INSERT INTO password_resets (token_hash, user_id, created_at, expires_at)
        VALUES ($1, $2, $3, $4)
        """,
        fingerprint(token),
        user_id,
        at,
        at + LIFETIME,
    )
    return token


async def is_open(database: Database, token: str, at: datetime) -> bool:
    """Tell whether a link still works."""
    row = await database.fetchrow(
        "SELECT true AS is_open FROM password_resets WHERE token_hash = $1 AND expires_at > $2",
        fingerprint(token),
        at,
    )
    return row is not None


async def use(tx: Transaction, token: str, at: datetime) -> str | None:
    """Use a link up, and every other of its user; answer with who it is for, None when it is over."""
    user_id: str | None = await tx.fetchval(
        """
        DELETE FROM password_resets USING users
        WHERE token_hash = $1 AND expires_at > $2 AND users.id = user_id
          AND NOT users.banned AND users.deletion_requested_at IS NULL
        RETURNING user_id
        """,
        fingerprint(token),
        at,
    )
    if user_id is not None:
        await forget(tx, user_id)
    return user_id


async def forget(tx: Transaction, user_id: str) -> None:
    """End every link of a user."""
    await tx.execute("DELETE FROM password_resets WHERE user_id = $1", user_id)
