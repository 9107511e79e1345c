"""SQL behind what operators read."""

from datetime import datetime

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row


async def audit_rows(database: Reader, limit: int, before: int | None) -> list[Row]:
    """Read audit rows, newest first, after a cursor."""
    wanted = Conditions(limit)
    wanted.add("id < {}", before)
    return await database.fetch(
        f"""
        SELECT id, event, subject, organization_id, actor, metadata::text AS metadata, created_at,
            audit_retention(event, retention) AS retention
        FROM audit_log WHERE {wanted} ORDER BY id DESC LIMIT $1
        """,  # noqa: S608 - conditions of this function
        *wanted.args,
    )


async def deliveries(
    database: Reader, limit: int, before: tuple[datetime, str] | None
) -> list[Row]:
    """Read deliveries, newest first, after a cursor of time and delivery id."""
    wanted = Conditions(limit)
    if before is not None:
        wanted.add("(created_at, delivery_id) < ({}, {})", *before)
    return await database.fetch(
        f"""
        SELECT store_id, delivery_id, topic, shop_domain, triggered_at, created_at
        FROM commerce_webhook_events WHERE {wanted}
        ORDER BY created_at DESC, delivery_id DESC LIMIT $1
        """,  # noqa: S608 - conditions of this function
        *wanted.args,
    )


async def dead_letters(
    database: Reader, limit: int, before: str | None, status: str = "dead"
) -> list[Row]:
    """Read messages and calls that failed for good, newest first, after a cursor."""
    wanted = Conditions(status, limit)
    wanted.add("id < {}", before)
    return await database.fetch(
        f"""
        SELECT id, key, kind, actor_key, name, payload::text AS payload, attempts, error,
               status, request_id, created_at, died_at, settled_at
        FROM dead_letters WHERE status = $1 AND {wanted} ORDER BY id DESC LIMIT $2
        """,  # noqa: S608 - conditions of this function
        *wanted.args,
    )


async def calls_of(database: Reader, kind: str, key: str, limit: int) -> list[Row]:
    """Read the calls of an actor: those that wait or are made, then failed ones, then what is done."""
    return await database.fetch(
        """
        (SELECT key, name, lane, state, attempts, due_at, last_error, request_id, created_at,
            NULL::timestamptz AS finished_at
        FROM outbox WHERE kind = $1 AND actor_key = $2 AND lane IS NOT NULL
        ORDER BY due_at LIMIT $3)
        UNION ALL
        (SELECT key, name, lane, 'failed', attempts, NULL, error, request_id, created_at, died_at
        FROM dead_letters
        WHERE kind = $1 AND actor_key = $2 AND lane IS NOT NULL AND status = 'dead'
        ORDER BY died_at DESC LIMIT $3)
        UNION ALL
        (SELECT key, name, lane, 'done', attempts, NULL, last_error, request_id, created_at,
            finished_at
        FROM finished_calls WHERE kind = $1 AND actor_key = $2
        ORDER BY finished_at DESC LIMIT $3)
        """,
        kind,
        key,
        limit,
    )


async def has_map(database: Database) -> bool:
    """Tell whether the migrations that make the map of slots have been applied."""
    row = await database.fetchrow("SELECT to_regclass('deployment') IS NOT NULL AS is_there")
    return bool(row and row["is_there"])


async def slots(database: Database) -> list[Row]:
    """Read the map of slots as it is on disk, in the order of the slots."""
    return await database.fetch(
        "SELECT slot, epoch, owner, pinned_to, claimed_at FROM slot_epochs ORDER BY slot"
    )


async def slot(database: Database, number: int) -> Row | None:
    """Read one slot of the map; none when there is no such slot."""
    return await database.fetchrow(
        "SELECT slot, epoch, owner, pinned_to, claimed_at FROM slot_epochs WHERE slot = $1", number
    )


async def outbox_by_slot(database: Database) -> dict[int, int]:
    """Count what waits in the outbox for the actors of each slot."""
    rows = await database.fetch("SELECT slot, count(*) AS n FROM outbox GROUP BY slot")
    return {row["slot"]: row["n"] for row in rows}
