"""SQL for what a refund depends on."""

from datetime import datetime

from tolsey.storage.database import Database


async def is_unused(database: Database, organization_id: str, payment_ref: str) -> bool:
    """Tell whether all that a payment granted is still there, and nothing pins any of it."""
    row = await database.fetchrow(
        """
        SELECT bool_and(remaining = amount AND pinned = 0) AS unused
        FROM credit_lots WHERE organization_id = $1 AND reference = $2
        """,
        organization_id,
        payment_ref,
    )
    return bool(row and row["unused"])


async def has_chatted(database: Database, organization_id: str, since: datetime) -> bool:
    """Tell whether any message was sent to the chat since then."""
    row = await database.fetchrow(
        "SELECT FROM chat_generations WHERE organization_id = $1 AND created_at >= $2 LIMIT 1",
        organization_id,
        since,
    )
    return row is not None
