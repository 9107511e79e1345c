"""SQL for `Idempotency-Key`: what a request was, what its ids come from, what it was answered."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

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


CLAIM: Final = """
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
"""
FIND: Final = """
SELECT fingerprint, request_id_seed AS seed, created_at, answer,
    answer IS NULL AND coalesce(locked_until <= $3, true) AND fingerprint = $4 AS held
FROM idempotency_keys WHERE user_id = $1 AND key = $2 FOR UPDATE
"""


async def claim(
    database: Database, user_id: str, key: str, fingerprint: bytes, at: datetime
) -> KeyRow:
    """Take a key for a request, or find what became of it; a key older than a day is new again."""
    until, seed = at + HELD, secrets.token_hex(16)
    new = KeyRow(fingerprint=fingerprint, seed=seed, created_at=at, answer=None, held=True)
    async with database.transaction() as tx:
        status = await tx.execute(CLAIM, user_id, key, fingerprint, seed, at, until, at - LIFETIME)
        if status == "INSERT 0 1":
            return new
        known = await tx.fetchrow(FIND, user_id, key, at, fingerprint)
        if known is None:  # swept between the two statements
            return new
        if known["held"]:
            await tx.execute(
                "UPDATE idempotency_keys SET locked_until = $3 WHERE user_id = $1 AND key = $2",
                user_id,
                key,
                until,
            )
    answer = known["answer"] and json.loads(known["answer"])
    return KeyRow(**{**known, "answer": answer})


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
