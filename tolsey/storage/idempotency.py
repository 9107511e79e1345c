"""SQL for `Idempotency-Key`: what a request was, what its ids come from, what it was answered."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tolsey.storage.database import Database

LIFETIME = timedelta(hours=24)
HELD = timedelta(seconds=60)
"""How long a request may work before a repeat of it takes over: it may have died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """What is known of a key; `held` says whether this call may go on and do the work."""

    fingerprint: bytes
    seed: str
    created_at: datetime
    answer: dict[str, Any] | None
    held: bool


async def claim(
    database: Database, user_id: str, key: str, fingerprint: bytes, at: datetime
) -> KeyRow:
    """Take a key for a request, or find what became of it; a key older than a day is new again."""
    async with database.transaction() as tx:
        row = await tx.fetchrow(
            """
            INSERT INTO idempotency_keys AS known
                (user_id, key, fingerprint, request_id_seed, created_at, locked_until)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (user_id, key) DO UPDATE SET
                fingerprint = excluded.fingerprint,
                request_id_seed = excluded.request_id_seed,
                created_at = excluded.created_at,
                locked_until = excluded.locked_until,
                answer = NULL
            WHERE known.created_at <= $7
            RETURNING fingerprint, request_id_seed, created_at
            """,
            user_id,
            key,
            fingerprint,
            secrets.token_hex(16),
            at,
            at + HELD,
            at - LIFETIME,
        )
        if row is not None:
            return KeyRow(
                fingerprint=row[0], seed=row[1], created_at=row[2], answer=None, held=True
            )
        known = await tx.fetchrow(
            """
            SELECT fingerprint, request_id_seed, created_at, answer,
                   answer IS NULL AND coalesce(locked_until <= $3, true) AS free
            FROM idempotency_keys WHERE user_id = $1 AND key = $2 FOR UPDATE
            """,
            user_id,
            key,
            at,
        )
        if known is None:  # swept between the two statements
            return KeyRow(
                fingerprint=fingerprint,
                seed=secrets.token_hex(16),
                created_at=at,
                answer=None,
                held=True,
            )
        held = bool(known["free"]) and known["fingerprint"] == fingerprint
        if held:
            await tx.execute(
                "UPDATE idempotency_keys SET locked_until = $3 WHERE user_id = $1 AND key = $2",
                user_id,
                key,
                at + HELD,
            )
    answer = json.loads(known["answer"]) if known["answer"] is not None else None
    return KeyRow(
        fingerprint=known["fingerprint"],
        seed=known["request_id_seed"],
        created_at=known["created_at"],
        answer=answer,
        held=held,
    )


async def answer(database: Database, user_id: str, key: str, answered: dict[str, Any]) -> None:
    """Keep what a request was answered; the first answer stays."""
    await database.execute(
        """
        UPDATE idempotency_keys SET answer = $3::jsonb, locked_until = NULL
        WHERE user_id = $1 AND key = $2 AND answer IS NULL
        """,
        user_id,
        key,
        json.dumps(answered),
    )


async def release(database: Database, user_id: str, key: str) -> None:
    """Let a repeat try again: the work did not end in an answer worth keeping."""
    await database.execute(
        "UPDATE idempotency_keys SET locked_until = NULL WHERE user_id = $1 AND key = $2",
        user_id,
        key,
    )
