"""SQL for messages and calls that failed for good: listed, grouped by their cause, sent again, given up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row, Transaction

FINGERPRINT: Final = "dead_letter_fingerprint(kind, name, error)"
"""What letters of one cause share: the actor's kind, the message, the error without words that hold digits."""

MOST_AT_ONCE: Final = 5_000
"""Letters of a group that one act settles."""
MOST_COUNTED: Final = 10_000
BEHIND: Final = (
    "o.sender = d.sender AND o.about = d.about AND o.about <> '' AND o.kind = d.kind"
    " AND o.actor_key = d.actor_key AND (o.created_at, o.key) > (d.created_at, d.key)"
)
"""Of a row `o` of the outbox: it waits behind the letter `d`, for its sender says it of the same thing."""
MOST_BEHIND: Final = 1_000
"""What is counted of it in a list of letters."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What a letter says instead: the message as JSON text, and what it is about."""

    payload: str
    about: str


async def listed(
    database: Reader,
    limit: int,
    before: str | None,
    *,
    status: str = "dead",
    fingerprint: str | None = None,
    id: str | None = None,
) -> list[Row]:
    """Read messages and calls that failed for good, newest first, after a cursor."""
    wanted = Conditions(status, limit)
    wanted.add("id < {}", before)
    wanted.add("id = {}", id)
    wanted.add(f"{FINGERPRINT} = {{}}", fingerprint)
    return await database.fetch(
        f"""
        SELECT id, key, kind, actor_key, name, payload::text AS payload, attempts, error,
               status, request_id, created_at, died_at, settled_at, {FINGERPRINT} AS fingerprint,
               about, CASE WHEN status = 'dead' THEN (
                   SELECT count(*) FROM (SELECT 1 FROM outbox o WHERE {BEHIND} LIMIT {MOST_BEHIND}) AS held
               ) ELSE 0 END AS behind
        FROM dead_letters AS d WHERE status = $1 AND {wanted} ORDER BY id DESC LIMIT $2
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


async def behind(database: Reader, which: WhichLetters) -> int:
    """Count what waits behind these letters and goes on with them; of many, up to `MOST_COUNTED`."""
    wanted = which.among(MOST_COUNTED)
    rows = await database.fetch(
        f"""
        SELECT count(*) AS n FROM (
            SELECT 1 FROM (SELECT * FROM dead_letters WHERE {wanted}) AS d
            CROSS JOIN LATERAL (
                SELECT 1 FROM outbox o WHERE {BEHIND} LIMIT $1) AS held LIMIT $1
        ) AS one
        """,  # noqa: S608 - conditions above
        *wanted.args,
    )
    return int(rows[0]["n"])


async def waiting_behind(database: Reader, id: str, limit: int) -> list[Row]:
    """Read what waits behind a letter, in the order in which it will take effect."""
    return await database.fetch(
        f"""
        SELECT o.key, o.name, o.request_id, o.created_at
        FROM (SELECT * FROM dead_letters WHERE id = $1 AND status = 'dead') AS d
        CROSS JOIN LATERAL (
            SELECT * FROM outbox o WHERE {BEHIND} ORDER BY o.created_at, o.key LIMIT $2) AS o
        """,  # noqa: S608 - constants
        id,
        limit,
    )


async def replay(
    database: Database,
    which: WhichLetters,
    *,
    per_second: float | None = None,
    edited: Edited | None = None,
) -> int:
    """Put letters back into the outbox under their own keys, oldest first; answer how many.

    So many become due each second, where that is given; what waited behind one follows it. Nobody knows whether a
    call that was given up was done.
    """
    said = (None, None) if edited is None else (edited.payload, edited.about)
    wanted = which.among(MOST_AT_ONCE, 1 / per_second if per_second else 0.0, *said)
    async with database.transaction() as tx:
        rows = await tx.fetch(
            f"""
            WITH chosen AS (
                SELECT id FROM dead_letters WHERE {wanted} ORDER BY id LIMIT $1 FOR UPDATE
            ), settled AS (
                UPDATE dead_letters SET status = 'replayed', settled_at = now()
                WHERE id IN (SELECT id FROM chosen)
                RETURNING id, key, slot, kind, actor_key, name, request_id, lane, sender, created_at,
                          coalesce($4, about) AS about, coalesce($3::jsonb, payload) AS payload
            ), due AS (
                SELECT *, now() + (row_number() OVER (ORDER BY id) - 1) * $2::float8 * interval '1 s' AS due_at
                FROM settled
            ), placed AS (
                INSERT INTO outbox (key, slot, kind, actor_key, name, payload, due_at, request_id, lane, state,
                    sender, about, created_at)
                SELECT key, slot, kind, actor_key, name, payload, due_at, request_id, lane,
                    CASE WHEN lane IS NULL THEN 'waiting' ELSE 'unknown' END, sender, about, created_at
                FROM due ON CONFLICT (key) DO NOTHING
            )
            SELECT id, due_at FROM due
            """,  # noqa: S608 - conditions above
            *wanted.args,
        )
        await _let_go_on(tx, {row["id"]: row["due_at"] for row in rows})
    return len(rows)


async def discard(database: Database, which: WhichLetters) -> int:
    """Give letters up, oldest first; what waited behind them goes on. Answers how many."""
    wanted = which.among(MOST_AT_ONCE)
    async with database.transaction() as tx:
        rows = await tx.fetch(
            f"""
            UPDATE dead_letters SET status = 'discarded', settled_at = now()
            WHERE id IN (SELECT id FROM dead_letters WHERE {wanted} ORDER BY id LIMIT $1 FOR UPDATE)
            RETURNING id, settled_at
            """,  # noqa: S608 - conditions above
            *wanted.args,
        )
        await _let_go_on(tx, {row["id"]: row["settled_at"] for row in rows})
    return len(rows)


async def _let_go_on(tx: Transaction, letters: Mapping[str, datetime]) -> None:
    """Let what waited behind letters become due when they do, in the order in which it came.

    A statement of its own: whoever held a row back meanwhile had its letter's row locked, and is seen by it.
    """
    await tx.execute(
        """
        UPDATE outbox SET held_by = NULL, due_at = behind.due_at
        FROM (
            SELECT held.key, letter.due_at + row_number() OVER (
                PARTITION BY letter.id ORDER BY held.created_at, held.key) * interval '1 us' AS due_at
            FROM unnest($1::text[], $2::timestamptz[]) AS letter(id, due_at)
            JOIN outbox AS held ON held.held_by = letter.id
        ) AS behind
        WHERE outbox.key = behind.key
        """,
        list(letters),
        list(letters.values()),
    )
