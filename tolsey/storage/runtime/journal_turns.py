"""SQL for what the journal keeps of an actor: its turns, and the way back to the states before them."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from tolsey.storage.database import Reader, Row, Transaction

AT_ONCE: Final = 200


async def turns(
    database: Reader, kind: str, key: str, limit: int, before: int | None = None
) -> list[Row]:
    """Read the turns of an actor that changed anything, newest first, after a version."""
    return await database.fetch(
        """
        SELECT version, message_id, message, epoch, committed_at, way_back IS NOT NULL AS is_kept
        FROM actor_journal WHERE kind = $1 AND key = $2 AND version < $4 ORDER BY version DESC LIMIT $3
        """,
        kind,
        key,
        limit,
        before if before is not None else (1 << 62),
    )


async def turn_of(database: Reader, kind: str, key: str, message_id: str, most: int) -> Row | None:
    """Find the turn of a message among the last so many of an actor."""
    return await database.fetchrow(
        """
        SELECT version, message_id, message, epoch, committed_at FROM (
            SELECT * FROM actor_journal WHERE kind = $1 AND key = $2 ORDER BY version DESC LIMIT $4
        ) AS last WHERE message_id = $3 ORDER BY version DESC LIMIT 1
        """,
        kind,
        key,
        message_id,
        most,
    )


async def ways_back(
    database: Reader, kind: str, key: str, *, newest: int, oldest: int
) -> AsyncIterator[list[Row]]:
    """Read the ways back from a version to another by pages, newest first; none for turns that kept none."""
    while newest >= oldest:
        rows = await database.fetch(
            """
            SELECT version, message_id, committed_at, way_back FROM actor_journal
            WHERE kind = $1 AND key = $2 AND version <= $3 AND version >= $4 ORDER BY version DESC LIMIT $5
            """,
            kind,
            key,
            newest,
            oldest,
            AT_ONCE,
        )
        yield rows
        if len(rows) < AT_ONCE:
            return
        newest = rows[-1]["version"] - 1


async def outdate(tx: Transaction, kind: str, keys: Sequence[str], by: str) -> None:
    """Have actors read themselves back before they write again: somebody else changes their rows.

    Called before the rows are changed: a turn on its way to disk locks them in this order, too. What of the state
    can be shown stays as it was, so the way back leads past it.
    """
    await tx.execute(
        """
        WITH held AS MATERIALIZED (
            SELECT kind, key FROM actors WHERE kind = $1 AND key = ANY($2::text[])
            ORDER BY kind, key FOR UPDATE),
        moved AS (
            UPDATE actors a SET version = a.version + 1 FROM held
            WHERE a.kind = held.kind AND a.key = held.key RETURNING a.kind, a.key, a.version)
        INSERT INTO actor_journal (kind, key, version, message_id, message, epoch, way_back)
        SELECT kind, key, version, $3, $3, 0, '[]' FROM moved
        """,
        kind,
        list(keys),
        by,
    )
