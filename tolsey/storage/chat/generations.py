"""SQL for answers of the chat model."""

from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.chat import Abandoned, Ending, Generation
from tolsey.storage.tables import table_of

GENERATIONS: Final = table_of(Generation)
SETTLING: Final = timedelta(minutes=1)
"""A live answer writes its end down this soon after its hold has ended."""
ABANDONED_AT_ONCE: Final = 200


def hold_id(generation_id: str) -> str:
    """Name the hold of an answer (product page "Credits and chat", 6.2)."""
    return f"chat:{generation_id}"


async def begin(database: Database, generation: Generation) -> bool:
    """Write down that an answer is made; False when one was, for the same claim."""
    return bool(
        await database.execute(
            f"{GENERATIONS.insert} {GENERATIONS.conflict}", *GENERATIONS.values_of(generation)
        )
    )


async def has_chatted(database: Database, organization_id: str, since: datetime) -> bool:
    """Tell whether any message was sent to the chat since then."""
    row = await database.fetchrow(
        "SELECT FROM chat_generations WHERE organization_id = $1 AND created_at >= $2 LIMIT 1",
        organization_id,
        since,
    )
    return row is not None


async def forget(database: Database, generation_id: str) -> None:
    """Take back that an answer is made: it was refused, and cost nothing."""
    await database.execute(
        "DELETE FROM chat_generations WHERE id = $1 AND ended_at IS NULL", generation_id
    )


async def end(database: Database, generation_id: str, ending: Ending, at: datetime) -> bool:
    """Write down how an answer ended; False when that was done before."""
    return bool(
        await database.execute(
            """
            UPDATE chat_generations SET ended_at = $2, outcome = $3, input_tokens = $4,
                output_tokens = $5, estimated = $6, cost = $7, charged = $8
            WHERE id = $1 AND ended_at IS NULL
            """,
            generation_id,
            at,
            ending.outcome,
            ending.input_tokens,
            ending.output_tokens,
            ending.estimated,
            ending.cost,
            ending.charged,
        )
    )


async def abandoned(database: Database, at: datetime) -> list[Abandoned]:
    """List answers whose hold has ended, or whose lease has: their process is no more."""
    rows = await database.fetch(
        """
        SELECT g.id, g.organization_id, coalesce(h.used, 0) AS used,
            coalesce(h.amount, 0) AS covered, h.id IS NULL OR h.closed_at IS NOT NULL AS closed
        FROM chat_generations g LEFT JOIN credit_holds h
            ON h.organization_id = g.organization_id AND h.id = 'chat:' || g.id
        WHERE g.ended_at IS NULL AND CASE
            WHEN h.id IS NULL THEN g.created_at <= $2
            WHEN h.closed_at IS NULL THEN h.lease_until <= $1
            ELSE h.closed_at <= $2 END
        ORDER BY g.created_at LIMIT $3
        """,
        at,
        at - SETTLING,
        ABANDONED_AT_ONCE,
    )
    return [Abandoned(**row) for row in rows]


async def orphaned(database: Database, leased_before: datetime) -> list[Abandoned]:
    """List answers whose process beats no more, and whose hold was last leased before a moment's."""
    rows = await database.fetch(
        """
        SELECT g.id, g.organization_id, h.used, h.amount AS covered, false AS closed
        FROM chat_generations g JOIN credit_holds h
            ON h.organization_id = g.organization_id AND h.id = 'chat:' || g.id
        WHERE g.ended_at IS NULL AND h.closed_at IS NULL AND h.lease_until <= $1
            AND g.process IS NOT NULL
            AND NOT EXISTS (SELECT FROM process_beats b WHERE b.process = g.process)
        ORDER BY g.created_at LIMIT $2
        """,
        leased_before,
        ABANDONED_AT_ONCE,
    )
    return [Abandoned(**row) for row in rows]


async def hold_of(database: Database, one: Abandoned) -> Abandoned:
    """Read again what became of an answer's hold."""
    row = await database.fetchrow(
        """
        SELECT used, amount, closed_at IS NOT NULL AS closed FROM credit_holds
        WHERE organization_id = $1 AND id = $2
        """,
        one.organization_id,
        hold_id(one.id),
    )
    if row is None:
        return one
    return Abandoned(one.id, one.organization_id, row["used"], row["amount"], row["closed"])
