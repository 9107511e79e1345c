"""SQL behind what operators read."""

from datetime import datetime

from tolsey.storage.database import Database, Row


async def audit_rows(database: Database, limit: int, before: int | None) -> list[Row]:
    """Read audit rows, newest first, after a cursor."""
    return await database.fetch(
        """
        SELECT id, event, subject, organization_id, actor, metadata::text AS metadata, created_at
        FROM audit_log WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC LIMIT $2
        """,
        before,
        limit,
    )


async def deliveries(
    database: Database, limit: int, before: tuple[datetime, str] | None
) -> list[Row]:
    """Read deliveries, newest first, after a cursor of time and delivery id."""
    at, delivery_id = before or (None, "")
    return await database.fetch(
        """
        SELECT store_id, delivery_id, topic, shop_domain, triggered_at, created_at
        FROM commerce_webhook_events
        WHERE $1::timestamptz IS NULL OR (created_at, delivery_id) < ($1, $2)
        ORDER BY created_at DESC, delivery_id DESC LIMIT $3
        """,
        at,
        delivery_id,
        limit,
    )
