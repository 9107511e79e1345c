"""SQL for what a store sold; currencies are never added up."""

from datetime import datetime
from typing import Final, Literal

from tolsey.storage.database import Reader, Row

GroupBy = Literal["none", "day", "week", "month", "source"]

MOST_ROWS: Final = 2_000
UTC: Final = "UTC"
ZONE: Final = """
SELECT z.name FROM store_shops s LEFT JOIN pg_timezone_names z ON z.name = s.timezone
WHERE s.store_id = $1
"""
BUCKET: Final = """
CASE WHEN $4::text IN ('day', 'week', 'month')
     THEN to_char(date_trunc($4, {table}.processed_at, $5::text) AT TIME ZONE $5, 'YYYY-MM-DD')
     WHEN $4 = 'source' THEN coalesce(o.source_name, 'unknown')
     ELSE 'all' END AS bucket
"""
COUNTED: Final = """
o.store_id = $1 AND o.deleted_at IS NULL AND o.cancelled_at IS NULL AND NOT o.test
"""
REPORT: Final = f"""
WITH sold AS (
    SELECT {BUCKET.format(table="o")}, o.currency, count(*) AS orders,
        coalesce(sum(o.total_minor), 0) AS gross,
        coalesce(sum(coalesce(o.current_total_minor, o.total_minor)), 0) AS now_worth,
        0 AS refunded
    FROM commerce_orders o
    WHERE {COUNTED} AND o.processed_at >= $2 AND o.processed_at < $3 AND o.currency IS NOT NULL
    GROUP BY 1, 2
),
returned AS (
    SELECT {BUCKET.format(table="r")}, r.currency, 0 AS orders, 0 AS gross, 0 AS now_worth,
        coalesce(sum(r.amount_minor), 0) AS refunded
    FROM commerce_refunds r
    JOIN commerce_orders o ON o.store_id = r.store_id AND o.order_id = r.order_id
    WHERE {COUNTED} AND r.processed_at >= $2 AND r.processed_at < $3 AND r.currency IS NOT NULL
    GROUP BY 1, 2
)
SELECT bucket, currency, sum(orders)::bigint AS orders, sum(gross)::bigint AS gross_minor,
    sum(now_worth)::bigint AS current_minor, sum(refunded)::bigint AS refunded_minor
FROM (SELECT * FROM sold UNION ALL SELECT * FROM returned) AS either
GROUP BY bucket, currency ORDER BY bucket, currency LIMIT {MOST_ROWS}
"""  # noqa: S608 - put together from constants


async def zone_of(database: Reader, store_id: str) -> str:
    """Name the time zone in which a store's days begin; UTC when it is not known."""
    row = await database.fetchrow(ZONE, store_id)
    return (row and row["name"]) or UTC


async def report(
    database: Reader,
    store_id: str,
    start: datetime,
    end: datetime,
    *,
    group_by: GroupBy,
    zone: str = UTC,
) -> list[Row]:
    """Add up the real orders of [start, end) and what was given back in it, by currency.

    A cancelled order counts in neither.
    """
    return await database.fetch(REPORT, store_id, start, end, group_by, zone)
