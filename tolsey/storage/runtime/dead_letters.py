"""SQL for messages and calls that failed for good: listed, grouped by their cause, sent again, given up."""

from dataclasses import dataclass
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.runtime import outbox

FINGERPRINT: Final = "dead_letter_fingerprint(kind, name, error)"
"""What letters of one cause share: the actor's kind, the message, the error without words that hold digits."""

MOST_AT_ONCE: Final = 5_000
"""Letters of a group that one act settles."""
MOST_COUNTED: Final = 10_000

_FIRST: Final = f"""
SELECT {FINGERPRINT} AS fingerprint FROM dead_letters
WHERE status = 'dead' AND {FINGERPRINT} > {{}} ORDER BY {FINGERPRINT} LIMIT 1
"""  # noqa: S608 - constants
GROUPS: Final = f"""
WITH RECURSIVE causes(fingerprint) AS (
    ({_FIRST.format("$1")})
    UNION ALL
    SELECT ({_FIRST.format("causes.fingerprint")}) FROM causes WHERE causes.fingerprint IS NOT NULL
)
SELECT causes.fingerprint, newest.*, counted.n AS letters,
    (SELECT died_at FROM dead_letters
        WHERE status = 'dead' AND {FINGERPRINT} = causes.fingerprint ORDER BY id LIMIT 1
    ) AS first_died_at
FROM causes
CROSS JOIN LATERAL (
    SELECT kind, name, error, lane, died_at AS last_died_at FROM dead_letters
    WHERE status = 'dead' AND {FINGERPRINT} = causes.fingerprint ORDER BY id DESC LIMIT 1
) AS newest
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM dead_letters
        WHERE status = 'dead' AND {FINGERPRINT} = causes.fingerprint LIMIT {MOST_COUNTED + 1}
    ) AS letter
) AS counted
LIMIT $2
"""  # noqa: S608 - constants
"""Steps from cause to cause along the index, and reads of each the newest letter and so many to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichLetters:
    """Which dead letters are meant: one by its id, or all of a cause."""

    id: str | None = None
    fingerprint: str | None = None

    def among(self, *args: object) -> Conditions:
        """Give the conditions of what can still be settled, after these arguments."""
        wanted = Conditions(*args)
        wanted.add("status = 'dead'")
        wanted.add("id = {}", self.id)
        wanted.add(f"{FINGERPRINT} = {{}}", self.fingerprint)
        return wanted


async def listed(
    database: Reader,
    limit: int,
    before: str | None,
    *,
    status: str = "dead",
    fingerprint: str | None = None,
) -> list[Row]:
    """Read messages and calls that failed for good, newest first, after a cursor."""
    wanted = Conditions(status, limit)
    wanted.add("id < {}", before)
    wanted.add(f"{FINGERPRINT} = {{}}", fingerprint)
    return await database.fetch(
        f"""
        SELECT id, key, kind, actor_key, name, payload::text AS payload, attempts, error,
               status, request_id, created_at, died_at, settled_at, {FINGERPRINT} AS fingerprint
        FROM dead_letters WHERE status = $1 AND {wanted} ORDER BY id DESC LIMIT $2
        """,  # noqa: S608 - conditions of this function
        *wanted.args,
    )


async def find(database: Reader, id: str) -> Row | None:
    """Read of what class of message or call a letter is that can still be settled; none when there is none."""
    return await database.fetchrow(
        "SELECT kind, name FROM dead_letters WHERE id = $1 AND status = 'dead'", id
    )


async def groups(database: Reader, limit: int, after: str) -> list[Row]:
    """Read the causes of what is not settled, in the order of their fingerprints, after one."""
    return await database.fetch(GROUPS, after, limit)


async def by_kind(database: Reader, most: int) -> dict[str, int]:
    """Count what failed for good and was not settled, by kind of actor, up to so many in all."""
    rows = await database.fetch(
        """
        SELECT kind, count(*) AS n
        FROM (SELECT kind FROM dead_letters WHERE status = 'dead' LIMIT $1) AS dead GROUP BY kind
        """,
        most,
    )
    return {row["kind"]: row["n"] for row in rows}


async def count(database: Reader, which: WhichLetters) -> int:
    """Count what an act would settle; of a large group, up to `MOST_COUNTED`."""
    wanted = which.among(MOST_COUNTED)
    rows = await database.fetch(
        f"SELECT count(*) AS n FROM (SELECT 1 FROM dead_letters WHERE {wanted} LIMIT $1) AS one",  # noqa: S608 - conditions above
        *wanted.args,
    )
    return int(rows[0]["n"])


async def replay(
    database: Database,
    which: WhichLetters,
    *,
    per_second: float | None = None,
    payload: str | None = None,
) -> int:
    """Put letters back into the outbox under their own keys, oldest first; answer how many.

    So many become due each second, where that is given. Nobody knows whether a call that was given up was done.
    """
    wanted = which.among(MOST_AT_ONCE, 1 / per_second if per_second else 0.0, payload)
    async with database.transaction() as tx:
        rows = await tx.fetch(
            f"""
            WITH chosen AS (
                SELECT id FROM dead_letters WHERE {wanted} ORDER BY id LIMIT $1 FOR UPDATE
            ), settled AS (
                UPDATE dead_letters SET status = 'replayed', settled_at = now()
                WHERE id IN (SELECT id FROM chosen)
                RETURNING id, key, slot, kind, actor_key, name, request_id, lane,
                          coalesce($3::jsonb, payload)::text AS payload
            )
            SELECT key, slot, kind, actor_key, name, payload, request_id, lane,
                   now() + (row_number() OVER (ORDER BY id) - 1) * $2::float8 * interval '1 s' AS due_at,
                   CASE WHEN lane IS NULL THEN 'waiting' ELSE 'unknown' END AS state
            FROM settled
            """,  # noqa: S608 - conditions above
            *wanted.args,
        )
        await outbox.put(tx, [OutboxRow(**dict(row)) for row in rows])
    return len(rows)


async def discard(database: Database, which: WhichLetters) -> int:
    """Give letters up, oldest first; answer how many."""
    wanted = which.among(MOST_AT_ONCE)
    return await database.execute(
        f"""
        UPDATE dead_letters SET status = 'discarded', settled_at = now()
        WHERE id IN (SELECT id FROM dead_letters WHERE {wanted} ORDER BY id LIMIT $1 FOR UPDATE)
        """,  # noqa: S608 - conditions above
        *wanted.args,
    )
