"""SQL for what a store sold; currencies are never added up."""

from datetime import UTC as UTC_ZONE
from datetime import date, datetime, timedelta
from typing import Final, Literal

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import sums

GroupBy = Literal["none", "day", "week", "month", "source"]

MOST_ROWS: Final = 2_000
UTC: Final = "UTC"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
QUARTER: Final = timedelta(minutes=15)
DAY: Final = timedelta(days=1)
ZONE: Final = "SELECT known_zone(timezone) AS name FROM store_shops WHERE store_id = $1"
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

ROWS: Final = f"""
    SELECT o.processed_at AS at, coalesce(o.source_name, 'unknown') AS source, o.currency,
        1 AS orders, coalesce(o.total_minor, 0) AS gross,
        coalesce(o.current_total_minor, o.total_minor, 0) AS now_worth, 0 AS refunds, 0 AS refunded
    FROM commerce_orders o
    WHERE {COUNTED} AND o.currency IS NOT NULL
      AND o.processed_at >= {{since}}::timestamptz AND o.processed_at < {{until}}::timestamptz
    UNION ALL
    SELECT r.at, r.source, r.currency, 0, 0, 0, 1, r.amount_minor FROM commerce_counted_refunds r
    WHERE r.store_id = $1 AND NOT r.is_cancelled
      AND r.at >= {{since}}::timestamptz AND r.at < {{until}}::timestamptz
"""  # noqa: S608 - put together from constants
"""Both bounds stand in the condition itself: of a bound that is joined the planner expects a ninth of the store."""
FROM_SUMS: Final = f"""
WITH firsts AS (
    SELECT d AT TIME ZONE $5 AS first
    FROM (SELECT CASE WHEN $4::text IN ('none', 'source') THEN 'day' ELSE $4 END AS unit) AS u,
        generate_series(date_trunc(unit, $2 AT TIME ZONE $5), $3 AT TIME ZONE $5,
            ('1 ' || unit)::interval) AS d
    WHERE $4 NOT IN ('none', 'source')
    UNION ALL SELECT '-infinity' WHERE $4 IN ('none', 'source')
),
periods AS (
    SELECT first, lead(first, 1, 'infinity') OVER (ORDER BY first) AS next FROM firsts
),
bounded AS (
    SELECT first, greatest(first, $6) AS since, least(next, $7) AS until FROM periods
),
whole AS (
    SELECT *, date_bin('1 hour', until, 'epoch') AS last_hour, least(until,
        date_bin('1 hour', since - interval '1 microsecond', 'epoch') + interval '1 hour') AS first_hour
    FROM bounded WHERE since < until
),
spans AS (
    SELECT first, 60 AS minutes, first_hour AS since, last_hour AS until FROM whole
    UNION ALL SELECT first, 15, since, first_hour FROM whole
    UNION ALL SELECT first, 15, greatest(first_hour, last_hour), until FROM whole
),
read AS (
    {" UNION ALL ".join(ROWS.format(since=a, until=b) for a, b in (("$2", "$6"), ("$7", "$3")))}
),
parts AS (
    SELECT s.first, k.* FROM spans s CROSS JOIN LATERAL (
        SELECT CASE WHEN $4 = 'source' THEN source END AS source, currency, sum(orders) AS orders,
            sum(gross_minor) AS gross, sum(current_minor) AS now_worth, sum(refunds) AS refunds,
            sum(refunded_minor) AS refunded
        FROM commerce_sales
        WHERE store_id = $1 AND minutes = s.minutes AND at >= s.since AND at < s.until
          AND currency <> ''
        GROUP BY 1, 2
    ) k
    WHERE s.since < s.until
    UNION ALL
    SELECT p.first, CASE WHEN $4 = 'source' THEN source END, currency, orders, gross, now_worth,
        refunds, refunded
    FROM read JOIN periods p ON at >= p.first AND at < p.next
)
SELECT CASE WHEN $4 IN ('none', 'source') THEN coalesce(source, 'all')
        ELSE to_char(first AT TIME ZONE $5, 'YYYY-MM-DD') END AS bucket,
    currency, sum(orders)::bigint AS orders, sum(gross)::bigint AS gross_minor,
    sum(now_worth)::bigint AS current_minor, sum(refunded)::bigint AS refunded_minor
FROM parts GROUP BY 1, 2 HAVING sum(orders) <> 0 OR sum(refunds) <> 0
ORDER BY 1, 2 LIMIT {MOST_ROWS}
"""  # noqa: S608 - put together from constants
"""Of each day, week or month its hours, and quarters of one where a zone's days do not begin on an hour.

What the time asked for begins and ends within is read from rows.
"""
REFUNDED: Final = """
SELECT is_cancelled, reason, currency, sum(refunds)::bigint AS refunds, sum(amount_minor)::bigint AS amount_minor
FROM ({refunds}) AS told
GROUP BY 1, 2, 3 HAVING sum(refunds) <> 0
ORDER BY currency, sum(amount_minor) DESC, 1, 2 LIMIT {most}
"""
REFUNDED_OF_SUMS: Final = REFUNDED.format(
    refunds="""
    SELECT is_cancelled, reason, currency, refunds, amount_minor FROM commerce_refund_reasons
    WHERE store_id = $1 AND day >= ($4::timestamptz AT TIME ZONE 'UTC')::date AND day < ($5::timestamptz AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT is_cancelled, reason, currency, 1, amount_minor FROM commerce_counted_refunds
    WHERE store_id = $1 AND at >= $2 AND at < $4
    UNION ALL
    SELECT is_cancelled, reason, currency, 1, amount_minor FROM commerce_counted_refunds
    WHERE store_id = $1 AND at >= $5 AND at < $3
    """,
    most=MOST_ROWS,
)
"""Whole days, between `$4` and `$5`, are kept; those that the time asked for begins and ends within are read."""
REFUNDED_OF_ROWS: Final = REFUNDED.format(
    refunds="""
    SELECT o.cancelled_at IS NOT NULL AS is_cancelled, coalesce(
            CASE WHEN o.cancelled_at IS NULL THEN r.reason ELSE o.cancel_reason END, 'unknown'
        ) AS reason, r.currency, 1 AS refunds, coalesce(r.amount_minor, 0) AS amount_minor
    FROM commerce_refunds r JOIN commerce_orders o USING (store_id, order_id)
    WHERE r.store_id = $1 AND r.processed_at >= $2 AND r.processed_at < $3
      AND r.currency IS NOT NULL AND o.deleted_at IS NULL AND NOT o.test
    """,
    most=MOST_ROWS,
)
"""Those of cancelled orders, too, by why the order was cancelled."""
ATTRIBUTED: Final = """
SELECT source, CASE WHEN $4 THEN medium ELSE '' END AS medium,
    CASE WHEN $4 THEN campaign ELSE '' END AS campaign, currency, sum(orders)::bigint AS orders,
    sum(gross_minor)::bigint AS gross_minor, sum(current_minor)::bigint AS current_minor
FROM ({sold}) AS parts
GROUP BY 1, 2, 3, 4 HAVING sum(orders) <> 0
ORDER BY currency, sum(gross_minor) DESC, 1, 2, 3 LIMIT $5
"""
KNOWN_TOUCHES: Final = """
FROM commerce_attribution WHERE store_id = $1 AND day >= $2 AND day < $3 AND source <> ''
"""
ATTRIBUTED_OF_SUMS: Final = ATTRIBUTED.format(
    sold=f"""
    SELECT source, medium, campaign, currency, orders, gross_minor, current_minor {KNOWN_TOUCHES}
    UNION ALL
    SELECT '', '', '', currency, -orders, -gross_minor, -current_minor {KNOWN_TOUCHES}
    UNION ALL
    SELECT '', '', '', currency, orders, gross_minor, current_minor FROM commerce_sales
    WHERE store_id = $1 AND minutes = 60 AND at >= $2::date::timestamp AT TIME ZONE 'UTC'
      AND at < $3::date::timestamp AT TIME ZONE 'UTC' AND currency <> ''
    """  # noqa: S608 - put together from constants
)
"""What no source is known of is all that was sold, less what one is: so the rows are the sales of the days."""
ATTRIBUTED_OF_ROWS: Final = ATTRIBUTED.format(
    sold=f"""
    SELECT coalesce(t.source, '') AS source,
        CASE WHEN t.source IS NULL THEN '' ELSE coalesce(t.medium, '') END AS medium,
        CASE WHEN t.source IS NULL THEN '' ELSE coalesce(t.campaign, '') END AS campaign, o.currency,
        1 AS orders, coalesce(o.total_minor, 0) AS gross_minor,
        coalesce(o.current_total_minor, o.total_minor, 0) AS current_minor
    FROM commerce_orders o LEFT JOIN attribution_touches t
        ON t.store_id = o.store_id AND t.order_id = o.order_id AND t.deleted_at IS NULL
    WHERE {COUNTED} AND o.processed_at >= $2::date::timestamp AT TIME ZONE 'UTC'
      AND o.processed_at < $3::date::timestamp AT TIME ZONE 'UTC' AND o.currency IS NOT NULL
    """  # noqa: S608 - put together from constants
)


async def zone_of(database: Reader, store_id: str) -> str:
    """Name the time zone in which a store's days begin; UTC when it is not known."""
    row = await database.fetchrow(ZONE, store_id)
    return (row and row["name"]) or UTC


async def report(
    database: Reader,
    shop: ShopKey,
    start: datetime,
    end: datetime,
    *,
    group_by: GroupBy,
    zone: str = UTC,
) -> list[Row]:
    """Add up the real orders of [start, end) and what was given back in it, by currency.

    A cancelled order counts in neither.
    """
    if await sums.is_whole(database, shop):
        first, last = _whole(start, end, QUARTER)
        return await database.fetch(FROM_SUMS, shop, start, end, group_by, zone, first, last)
    return await database.fetch(REPORT, shop, start, end, group_by, zone)


async def refunds(database: Reader, shop: ShopKey, start: datetime, end: datetime) -> list[Row]:
    """Add up what was given back in [start, end) by why, the most first, for each currency apart."""
    if await sums.is_whole(database, shop):
        return await database.fetch(REFUNDED_OF_SUMS, shop, start, end, *_whole(start, end, DAY))
    return await database.fetch(REFUNDED_OF_ROWS, shop, start, end)


async def attributed(
    database: Reader, shop: ShopKey, start: date, end: date, *, campaigns: bool, limit: int
) -> list[Row]:
    """Add up sales from a day until before another, in UTC, by where buyers came from; empty where unknown."""
    whole = await sums.is_whole(database, shop)
    sql = ATTRIBUTED_OF_SUMS if whole else ATTRIBUTED_OF_ROWS
    return await database.fetch(sql, shop, start, end, campaigns, limit)


def _whole(start: datetime, end: datetime, unit: timedelta) -> tuple[datetime, datetime]:
    """Tell between which moments only whole units lie; where there is none, nothing lies between them."""
    first, last = start + (EPOCH - start) % unit, end - (end - EPOCH) % unit
    return (first, last) if first <= last else (start, start)
