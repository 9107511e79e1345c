"""SQL for work that follows commits, and for messages that failed for good."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from tolsey.storage.database import Database, Row
from tolsey.storage.records.runtime.turns import OutboxRow

COLUMNS = "key, slot, kind, actor_key, name, payload::text AS payload, due_at, attempts, request_id"


def _row(row: Row) -> OutboxRow:
    return OutboxRow(**dict(row))


class Outbox:
    """The outbox and the dead letters of a service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(
        self, limit: int, but: Iterable[str], slots: Sequence[int] | None = None
    ) -> list[OutboxRow]:
        """Take up to `limit` rows that are due and not in `but`; their attempt is counted first.

        Only those of actors in `slots`, where given.

        Counting in a commit of its own means that a message that kills the process is counted too.
        """
        rows = await self._database.fetch(
            f"""
            UPDATE outbox SET attempts = attempts + 1
            WHERE key IN (
                SELECT key FROM outbox WHERE due_at <= now() AND NOT key = ANY($2::text[])
                AND ($3::int[] IS NULL OR slot = ANY($3))
                ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
            RETURNING {COLUMNS}
            """,  # noqa: S608 - a constant list of columns
            limit,
            list(but),
            None if slots is None else list(slots),
        )
        return [_row(row) for row in sorted(rows, key=lambda row: row["due_at"])]

    async def add(self, rows: Sequence[OutboxRow]) -> int:
        """Keep rows; answer how many were new: a key that waits already is left alone."""
        return await self._database.execute(
            """
            INSERT INTO outbox (key, slot, kind, actor_key, name, payload, due_at, request_id)
            SELECT key, slot, kind, actor_key, name, payload, coalesce(due_at, now()), request_id
            FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[],
                        $6::jsonb[], $7::timestamptz[], $8::text[])
                AS row(key, slot, kind, actor_key, name, payload, due_at, request_id)
            ON CONFLICT (key) DO NOTHING
            """,
            [row.key for row in rows],
            [row.slot for row in rows],
            [row.kind for row in rows],
            [row.actor_key for row in rows],
            [row.name for row in rows],
            [row.payload for row in rows],
            [row.due_at for row in rows],
            [row.request_id for row in rows],
        )

    async def replace(self, key: str, rows: Sequence[OutboxRow]) -> None:
        """Take a finished row away and put what follows from it in its place, or nothing."""
        async with self._database.transaction() as tx:
            gone = await tx.fetchval("DELETE FROM outbox WHERE key = $1 RETURNING key", key)
            if gone is None:
                return
            for row in rows:
                await tx.execute(
                    """
                    INSERT INTO outbox
                        (key, slot, kind, actor_key, name, payload, due_at, request_id)
                    VALUES ($1, $2, $3, $4, $5, $6::jsonb, coalesce($7, now()), $8)
                    ON CONFLICT (key) DO NOTHING
                    """,
                    row.key,
                    row.slot,
                    row.kind,
                    row.actor_key,
                    row.name,
                    row.payload,
                    row.due_at,
                    row.request_id,
                )

    async def postpone(self, key: str, seconds: float, attempts: int, error: str) -> None:
        """Try a row again later."""
        await self._database.execute(
            "UPDATE outbox SET due_at = now() + $2, attempts = $3, last_error = $4 WHERE key = $1",
            key,
            timedelta(seconds=seconds),
            attempts,
            error,
        )

    async def bury(self, key: str, id: str, attempts: int, error: str) -> None:
        """Move a row that failed for good to the dead letters."""
        async with self._database.transaction() as tx:
            await tx.execute(
                """
                WITH gone AS (DELETE FROM outbox WHERE key = $1 RETURNING *)
                INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts,
                                          error, request_id, created_at)
                SELECT $2, key, slot, kind, actor_key, name, payload, $3, $4, request_id, created_at
                FROM gone
                """,
                key,
                id,
                attempts,
                error,
            )

    async def depth(self) -> int:
        """Count what waits."""
        row = await self._database.fetchrow("SELECT count(*) AS n FROM outbox")
        return int(row["n"]) if row else 0

    async def dead(self, limit: int, before: str | None, status: str = "dead") -> list[Row]:
        """List dead letters, newest first, after a cursor."""
        return await self._database.fetch(
            """
            SELECT id, key, kind, actor_key, name, payload::text AS payload, attempts, error,
                   status, request_id, created_at, died_at, settled_at
            FROM dead_letters
            WHERE status = $1 AND ($2::text IS NULL OR id < $2) ORDER BY id DESC LIMIT $3
            """,
            status,
            before,
            limit,
        )

    async def revive(self, id: str) -> OutboxRow | None:
        """Put a dead letter back into the outbox under its own key; none when it is not dead."""
        async with self._database.transaction() as tx:
            row = await tx.fetchrow(
                """
                UPDATE dead_letters SET status = 'replayed', settled_at = now()
                WHERE id = $1 AND status = 'dead'
                RETURNING key, slot, kind, actor_key, name, payload::text AS payload,
                          now() AS due_at, request_id
                """,
                id,
            )
            if row is None:
                return None
            revived = OutboxRow(**dict(row))
            await tx.execute(
                """
                INSERT INTO outbox (key, slot, kind, actor_key, name, payload, request_id)
                VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7) ON CONFLICT (key) DO NOTHING
                """,
                revived.key,
                revived.slot,
                revived.kind,
                revived.actor_key,
                revived.name,
                revived.payload,
                revived.request_id,
            )
            return revived

    async def discard(self, id: str) -> bool:
        """Give a dead letter up; false when it is not dead."""
        return bool(
            await self._database.execute(
                "UPDATE dead_letters SET status = 'discarded', settled_at = now()"
                " WHERE id = $1 AND status = 'dead'",
                id,
            )
        )
