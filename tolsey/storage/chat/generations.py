"""SQL for answers of the chat model."""

from datetime import datetime
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.chat import Ending, Generation
from tolsey.storage.tables import table_of

GENERATIONS: Final = table_of(Generation)


def hold_id(generation_id: str) -> str:
    """Name the hold of an answer (rules/chat#paying)."""
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


async def is_left(database: Database, generation_id: str) -> bool | None:
    """Tell whether the process that makes an answer beats no more; None when no answer is made."""
    row = await database.fetchrow(
        """
        SELECT process IS NOT NULL
            AND NOT EXISTS (SELECT FROM process_beats b WHERE b.process = g.process) AS is_left
        FROM chat_generations g WHERE id = $1 AND ended_at IS NULL
        """,
        generation_id,
    )
    return None if row is None else bool(row["is_left"])


async def end_left(database: Database, generation_id: str, at: datetime) -> bool:
    """Write down that an answer ended with its process, at what its hold says; False when it had ended."""
    return bool(
        await database.execute(
            """
            UPDATE chat_generations g SET ended_at = $2, outcome = 'crashed', estimated = true,
                cost = coalesce(h.used, 0), charged = coalesce(least(h.used, h.amount), 0)
            FROM chat_generations o LEFT JOIN credit_holds h
                ON h.organization_id = o.organization_id AND h.id = 'chat:' || o.id
            WHERE o.id = $1 AND g.id = o.id AND g.ended_at IS NULL
            """,
            generation_id,
            at,
        )
    )
