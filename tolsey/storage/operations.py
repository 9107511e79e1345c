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


async def deliveries(database: Database, limit: int, before: str | None) -> list[Row]:
    """Read deliveries, newest first, after a cursor of time and delivery id."""
    at, _, delivery_id = (before or "").partition("|")
    return await database.fetch(
        """
        SELECT store_id, delivery_id, topic, shop_domain, triggered_at, created_at
        FROM commerce_webhook_events
        WHERE $1::timestamptz IS NULL OR (created_at, delivery_id) < ($1, $2)
        ORDER BY created_at DESC, delivery_id DESC LIMIT $3
        """,
        datetime.fromisoformat(at) if at else None,
        delivery_id,
        limit,
    )
