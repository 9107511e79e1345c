"""SQL for work that follows commits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Transaction
from tolsey.storage.records.runtime.turns import CallState, Known, OutboxRow, Unread

COLUMNS = (
    "key, slot, kind, actor_key, name, payload::text AS payload, due_at, attempts, interruptions,"
    " request_id, lane, state, sender, about"
)
FINISHED_COLUMNS = "key, kind, actor_key, name, lane, attempts, last_error, request_id, created_at"
"""What is shown of a call for a day when it is done: not what it said, which may be personal."""


ADD = """
INSERT INTO outbox
    (key, slot, kind, actor_key, name, payload, due_at, request_id, sender, lane, state, about)
SELECT key, slot, kind, actor_key, name, payload, coalesce(due_at, now()), request_id, sender, lane,
    state, about
FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[],
            $6::jsonb[], $7::timestamptz[], $8::text[], $9::text[], $10::text[],
            $11::text[], $12::text[])
    AS row(key, slot, kind, actor_key, name, payload, due_at, request_id, sender, lane, state, about)
WHERE row.sender IS NULL OR row.about = '' OR (
    SELECT true FROM dead_letters d WHERE d.status = 'dead' AND d.sender = row.sender
        AND d.about = row.about AND d.key = row.key LIMIT 1) IS NULL
ON CONFLICT (key) DO NOTHING
"""


FINISH = f"""
WITH gone AS (DELETE FROM outbox WHERE key = $1 RETURNING {FINISHED_COLUMNS}), finished AS (
    INSERT INTO finished_calls ({FINISHED_COLUMNS})
    SELECT {FINISHED_COLUMNS} FROM gone WHERE lane IS NOT NULL)
SELECT key FROM gone
"""  # noqa: S608 - names of our own tables


def _columns(rows: Sequence[OutboxRow]) -> tuple[list[Any], ...]:
    """Give the arguments of `ADD`."""
    return (
        [row.key for row in rows],
        [row.slot for row in rows],
        [row.kind for row in rows],
        [row.actor_key for row in rows],
        [row.name for row in rows],
        [row.payload for row in rows],
        [row.due_at for row in rows],
        [row.request_id for row in rows],
        [row.sender for row in rows],
        [row.lane for row in rows],
        [row.state for row in rows],
        [row.about for row in rows],
    )


POSTPONE = (
    "UPDATE outbox SET due_at = now() + $2, attempts = $3, interruptions = $4, last_error = $5,"
    " state = $6 WHERE key = $1"
)
POSTPONE_BEHIND = """
UPDATE outbox o SET attempts = $3, interruptions = $4, last_error = $5, state = $6,
    held_by = ahead.id, due_at = CASE WHEN ahead.id IS NULL THEN now() + $2 ELSE 'infinity' END
FROM (SELECT (
    SELECT d.id FROM outbox w, dead_letters d WHERE w.key = $1 AND d.status = 'dead'
        AND d.sender = w.sender AND d.about = w.about AND d.kind = w.kind AND d.actor_key = w.actor_key
        AND (d.created_at, d.key) < (w.created_at, w.key)
    ORDER BY d.created_at, d.key LIMIT 1 FOR SHARE OF d) AS id) AS ahead
WHERE o.key = $1
"""
"""The letter's row is held meanwhile, so that whoever settles it lets this one go on, too."""


_KNOWN = "NOT key = ANY($2::text[]) AND name = ANY($3::text[]) AND kind = ANY($4::text[])"
_TOLD = "f.sender = {row}.sender AND f.kind = {row}.kind AND f.actor_key = {row}.actor_key"
_FIRST = f"""(sender IS NULL OR (
    SELECT true FROM outbox f WHERE {_TOLD.format(row="outbox")} AND f.about IN ('', outbox.about)
    AND (f.created_at, f.key) < (outbox.created_at, outbox.key) AND f.due_at < 'infinity' LIMIT 1) IS NULL)"""  # noqa: S608 - constants
"""What is told in order would come too early behind the first of it; behind what is held it is to be held, too."""
# Equal slots said as a range: then no index but that of slots can serve the order.
_OF_SLOT = f"slot >= owned.slot AND (slot, due_at) <= (owned.slot, now()) AND {_KNOWN} AND {_FIRST}"
DUE = f"SELECT {COLUMNS} FROM outbox WHERE due_at <= now() AND {_KNOWN} AND {_FIRST} ORDER BY due_at LIMIT $1"  # noqa: S608 - constants
DUE_OF_SLOTS = f"""
SELECT waiting.* FROM (
    SELECT owned.slot, count(*) OVER () AS slots
    FROM unnest($5::int[]) AS owned(slot)
    CROSS JOIN LATERAL (
        SELECT due_at FROM outbox WHERE {_OF_SLOT} ORDER BY slot, due_at LIMIT 1
    ) AS first
    ORDER BY first.due_at LIMIT $1
) AS owned
CROSS JOIN LATERAL (
    SELECT {COLUMNS} FROM outbox WHERE {_OF_SLOT}
    ORDER BY slot, due_at LIMIT greatest($1 / slots, 1)
) AS waiting
ORDER BY waiting.due_at LIMIT $1
"""  # noqa: S608 - put together from constants
NEXT_OF_THEM = f"""
SELECT waiting.* FROM (
    SELECT sender, about, kind, actor_key, created_at, key FROM outbox WHERE key = ANY($5::text[])
) AS first
CROSS JOIN LATERAL (
    SELECT {COLUMNS} FROM outbox f WHERE {_TOLD.format(row="first")} AND f.about = first.about
    AND (f.created_at, f.key) > (first.created_at, first.key) AND due_at <= now() AND {_KNOWN}
    ORDER BY f.created_at, f.key LIMIT greatest($1 / cardinality($5::text[]), 1)
) AS waiting
LIMIT $1
"""  # noqa: S608 - put together from constants
"""In order behind each: they go in one batch with what they wait for."""


async def put(tx: Transaction, rows: Sequence[OutboxRow]) -> None:
    """Keep rows with what causes them; a key that waits already is left alone."""
    await tx.execute(ADD, *_columns(rows))


class Outbox:
    """The outbox of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(
        self,
        limit: int,
        but: Iterable[str],
        known: Known,
        slots: Sequence[int] | None = None,
    ) -> list[OutboxRow]:
        """Read up to `limit` rows that are due and not in `but`, first due first, and in order what is told in order.

        Only what is `known` here, and only of actors in `slots`, where given: then each has its share.
        """
        left_out = list(but)
        if slots is None:
            rows = await self._due(DUE, limit, left_out, known)
        else:
            rows = await self._due_of_slots(limit, left_out, known, slots)
        ordered = [row.key for row in rows if row.sender is not None]
        if ordered and len(rows) < limit:
            rows += await self._due(NEXT_OF_THEM, limit - len(rows), left_out, known, ordered)
        return rows

    async def _due_of_slots(
        self, limit: int, left_out: list[str], known: Known, slots: Sequence[int]
    ) -> list[OutboxRow]:
        rows: list[OutboxRow] = []
        asked = list(slots)
        while asked and len(rows) < limit:
            left_out = [*left_out, *(row.key for row in rows)]
            found = await self._due(DUE_OF_SLOTS, limit - len(rows), left_out, known, asked)
            counts = Counter(row.slot for row in found)
            # Every slot that has something gave the same share at most: who gave as much may have more.
            share = (limit - len(rows)) // max(len(counts), 1)
            asked = [slot for slot, count in counts.items() if count >= share]
            rows += found
        return rows

    async def _due(
        self, sql: str, limit: int, but: list[str], known: Known, *which: list[Any]
    ) -> list[OutboxRow]:
        names, kinds = list(known.names), list(known.kinds)
        rows = await self._database.fetch_as_it_is(sql, limit, but, names, kinds, *which)
        return [OutboxRow(**dict(row)) for row in rows]

    async def begin(self, keys: Sequence[str]) -> dict[str, CallState]:
        """Note that work on rows begins; answer how far those are that are still there.

        In a commit of its own, so that a row that ends the process is known by what it leaves.
        """
        rows = await self._database.fetch(
            """
            UPDATE outbox SET interruptions = interruptions + 1,
                state = CASE WHEN lane IS NULL THEN outbox.state ELSE 'sent' END
            FROM (SELECT key, state FROM outbox WHERE key = ANY($1::text[])
                ORDER BY key FOR UPDATE) AS was
            WHERE outbox.key = was.key RETURNING was.key, was.state
            """,
            list(keys),
        )
        return {row["key"]: row["state"] for row in rows}

    async def give_back(self, keys: Sequence[str]) -> None:
        """Take back that work on rows began: this process stops, and says so."""
        await self._database.execute(
            "UPDATE outbox SET interruptions = interruptions - 1"
            " WHERE key = ANY($1::text[]) AND interruptions > 0",
            list(keys),
        )

    async def unread(
        self,
        known: Known,
        keys: Iterable[str],
        waited: timedelta,
        slots: Sequence[int] | None = None,
    ) -> list[Unread]:
        """Count what has been due for so long and is not `known` here, or is among `keys`."""
        wanted = Conditions(waited, list(known.names), list(known.kinds), list(keys))
        wanted.add("slot = ANY({}::int[])", slots)
        rows = await self._database.fetch_as_it_is(
            f"""
            SELECT kind, name, count(*) AS rows, now() - min(due_at) AS waited FROM outbox
            WHERE due_at <= now() - $1::interval AND {wanted}
            AND (NOT name = ANY($2::text[]) OR NOT kind = ANY($3::text[]) OR key = ANY($4::text[]))
            GROUP BY kind, name ORDER BY kind, name
            """,  # noqa: S608 - conditions of this function
            *wanted.args,
        )
        return [
            Unread(kind=row["kind"], name=row["name"], rows=row["rows"], waited=row["waited"])
            for row in rows
        ]

    async def add(self, rows: Sequence[OutboxRow]) -> int:
        """Keep rows; answer how many were new: a key that waits already, or lies in quarantine, is left alone."""
        return await self._database.execute(ADD, *_columns(rows))

    async def replace(self, key: str, rows: Sequence[OutboxRow]) -> None:
        """Take a finished row away and put what follows from it in its place, or nothing."""
        if not rows:
            await self._database.execute(FINISH, key)
            return
        async with self._database.transaction() as tx:
            if await tx.fetchval(FINISH, key) is not None:
                await put(tx, rows)

    async def postpone(self, row: OutboxRow, seconds: float, error: str) -> None:
        """Try a row again later, with what it counts by now; one behind a dead letter when that is settled."""
        is_ordered = row.sender is not None and row.about != ""
        await self._database.execute(
            POSTPONE_BEHIND if is_ordered else POSTPONE,
            row.key,
            timedelta(seconds=seconds),
            row.attempts,
            row.interruptions,
            error,
            row.state,
        )

    async def bury(
        self,
        row: OutboxRow,
        id: str,
        error: str,
        follow: Sequence[OutboxRow] = (),
        *,
        holds: bool = True,
    ) -> None:
        """Move a row that failed for good to the dead letters, and put what follows in its place.

        Where it `holds`, what its sender says of the same thing waits behind it.
        """
        async with self._database.transaction() as tx:
            gone = await tx.fetchval(
                """
                WITH gone AS (DELETE FROM outbox WHERE key = $1 RETURNING *)
                INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts,
                                          error, request_id, created_at, lane, sender, about)
                SELECT $2, key, slot, kind, actor_key, name, payload, $3, $4, request_id,
                       created_at, lane, CASE WHEN $5 THEN sender END, about
                FROM gone RETURNING id
                """,
                row.key,
                id,
                row.attempts,
                error,
                holds,
            )
            if gone is not None and follow:
                await put(tx, follow)
