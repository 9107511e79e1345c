"""SQL for what was sold of each product: what sells best, and how fast stock goes."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Final, Literal

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import sums

Ranking = Literal["revenue", "units"]

MOST_ROWS: Final = 500
DAY: Final = timedelta(days=1)
QUICKEST: Final = 20
"""For each variant that is wanted."""
HALF_A_MONTH: Final = 15
SHORTEST_MONTH: Final = 28
LOOKED_UP: Final = 3_000
LOOKED_UP_EACH: Final = 100
"""So many sums of leaders are looked up, and more for each that is wanted: beyond, adding up all is as quick."""
SOLD: Final = """
SELECT product_id, variant_id, currency, {sign}units AS units, {sign}kept_units AS kept_units, {sign}sold AS sold
FROM commerce_product_sales
WHERE store_id = $1 AND span = '{span}' AND day >= {start} AND day < {end}
"""
LINES_SOLD: Final = """
SELECT l.product_id, l.variant_id, l.currency, l.units, l.kept_units, l.sold
FROM commerce_orders o CROSS JOIN LATERAL sold_lines(1, o.store_id, o.order_id, o.processed_at,
    o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts) l
WHERE o.store_id = $1 AND o.processed_at >= $2::date::timestamp AT TIME ZONE 'UTC'
  AND o.processed_at < $3::date::timestamp AT TIME ZONE 'UTC'
"""
BEST: Final = """
WITH ranked AS (
    SELECT product_id, currency, sum(units)::bigint AS units, sum(kept_units)::bigint AS kept_units,
        sum(sold) AS sold, row_number() OVER (
            PARTITION BY currency
            ORDER BY CASE $4::text WHEN 'units' THEN sum(units) ELSE sum(sold) END DESC, product_id
        ) AS place
    FROM ({sold}) AS parts
    GROUP BY product_id, currency HAVING sum(units) > 0
)
SELECT ranked.*, p.title FROM ranked
LEFT JOIN commerce_products p ON p.store_id = $1 AND p.product_id = ranked.product_id
WHERE place <= $5
ORDER BY currency, place LIMIT {most}
"""
BEST_OF_SUMS: Final = BEST.format(
    sold=" UNION ALL ".join(
        SOLD.format(sign=sign, span=span, start=start, end=end)
        for sign, span, start, end in (
            ("", "month", "$6", "$7"),
            ("", "day", "$2", "$6"),
            ("-", "day", "$6", "$2"),
            ("-", "day", "$3", "$7"),
        )
    ),
    most=MOST_ROWS,
)
"""Whole months between `$6` and `$7`, and the days by which they differ from what is asked, on or off.

The last month is whole: of the days that have not come, nothing is there to be taken off.
"""
BEST_OF_ROWS: Final = BEST.format(sold=LINES_SOLD, most=MOST_ROWS)
LIKELY: Final = """
WITH RECURSIVE months AS (
    SELECT month::date FROM generate_series(
        date_trunc('month', $2::date::timestamp), $3::date - interval '1 day', '1 month') AS month
), known(month, currency) AS (
    SELECT month, (SELECT s.currency FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = 'month' AND s.day = month ORDER BY s.currency LIMIT 1)
    FROM months
    UNION ALL
    SELECT month, (SELECT s.currency FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = 'month' AND s.day = month AND s.currency > known.currency
        ORDER BY s.currency LIMIT 1)
    FROM known WHERE currency IS NOT NULL
), leaders AS MATERIALIZED (
    SELECT month, known.currency, best.* FROM known CROSS JOIN LATERAL (
        SELECT s.product_id, s.{by} AS much FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = 'month' AND s.day = month AND s.currency = known.currency
        ORDER BY s.{by} DESC LIMIT $7) best
), others AS (
    SELECT currency, sum(much) AS most FROM (
        SELECT currency, CASE WHEN count(*) < $7 THEN 0 ELSE min(much) END AS much
        FROM leaders GROUP BY month, currency) AS last_of_months
    GROUP BY currency
), days AS MATERIALIZED (
    SELECT 1 AS sign, 'month' AS span, day::date
    FROM generate_series($5::date, $6::date - interval '1 day', '1 month') AS day
    UNION ALL
    SELECT sign, 'day', edge::date FROM (VALUES
        (1, $2::date, $5::date), (-1, $5::date, $2::date), (-1, $3::date, $6::date)
    ) AS edges(sign, start, until),
        generate_series(start, until - interval '1 day', '1 day') AS edge
    WHERE EXISTS (SELECT FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = 'day' AND s.day = edge::date)
), ranked AS (
    SELECT product_id, currency, sum(sign * units)::bigint AS units,
        sum(sign * kept_units)::bigint AS kept_units, sum(sign * sold) AS sold, row_number() OVER (
            PARTITION BY currency ORDER BY sum(sign * {by}) DESC, product_id) AS place
    FROM (SELECT DISTINCT product_id FROM leaders) AS candidates CROSS JOIN days CROSS JOIN LATERAL (
        SELECT s.currency, s.units, s.kept_units, s.sold FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = days.span AND s.day = days.day
          AND s.product_id = candidates.product_id OFFSET 0) AS parts
    GROUP BY product_id, currency HAVING sum(sign * units) > 0
)
SELECT best.product_id, best.currency, best.units, best.kept_units, best.sold, best.place,
    (SELECT title FROM commerce_products p WHERE p.store_id = $1 AND p.product_id = best.product_id),
    (SELECT coalesce(bool_and(most <= 0 OR coalesce(last.{by} > most, false)), true) FROM others
    LEFT JOIN ranked last ON last.currency = others.currency AND last.place = $4)
    AND NOT EXISTS (SELECT FROM commerce_product_sales s
        WHERE s.store_id = $1 AND s.span = 'day' AND (s.units < 0 OR s.sold < 0)) AS is_certain
FROM (SELECT) AS always LEFT JOIN ranked best ON best.place <= $4
ORDER BY best.currency, best.place LIMIT {most}
"""
"""The best among those that lead in some month, `$7` of each; `is_certain` when no other product can be among them.

The threshold algorithm (Fagin, Lotem, Naor: Optimal aggregation algorithms for middleware, 2003, section 4): who
leads in no month sold in each at most what the last of its leaders did, so never more than these together.
Whole months hold all days asked for, and what less of them counts is never below nothing.
"""
BEST_OF_LEADERS: Final = {
    by: LIKELY.format(by=column, most=MOST_ROWS)
    for by, column in (("revenue", "sold"), ("units", "units"))
}
RUNNING_OUT: Final = """
WITH sold AS MATERIALIZED (
    SELECT product_id, variant_id, sum(kept_units)::bigint AS units FROM ({sold}) AS parts
    WHERE variant_id <> 0
    GROUP BY 1, 2 HAVING sum(kept_units) > 0
), latest AS MATERIALIZED (
    SELECT max(share) AS share FROM (
        SELECT k.available::float / sold.units AS share
        FROM (SELECT * FROM sold ORDER BY units DESC LIMIT {quickest} * $4) AS sold
        CROSS JOIN LATERAL (SELECT * FROM {stock} WHERE k.product_id = sold.product_id OFFSET 0) AS k
        WHERE k.variant_id = sold.variant_id AND k.available > 0 AND k.is_listed
        ORDER BY 1 LIMIT $4) AS first
    HAVING count(*) = $4
)
SELECT k.product_id, p.title AS product, k.variant_id, v->>'title' AS variant, v->>'sku' AS sku,
    k.available, k.units
FROM (
    SELECT k.product_id, k.variant_id, k.place, k.available, sold.units
    FROM sold JOIN {stock} ON k.product_id = sold.product_id AND k.variant_id = sold.variant_id
    WHERE k.available > 0 AND k.is_listed
      AND 1::float / sold.units <= coalesce((SELECT share FROM latest), 'infinity')
    ORDER BY k.available::float / sold.units, k.variant_id LIMIT $4
) k
JOIN commerce_products p ON p.store_id = $1 AND p.product_id = k.product_id
CROSS JOIN LATERAL (SELECT p.variants->(k.place - 1)::int AS v) AS said
ORDER BY k.available::float / k.units, k.variant_id
"""
"""Of what sells quickest, enough is held against its stock to tell what runs out too late, be only one of it left."""
MEDIAN_OF: Final = 1_000
MEDIAN_PRICE: Final = f"""
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY (v->>'price')::numeric) AS price
FROM (SELECT variants FROM commerce_products WHERE store_id = $1 AND deleted_at IS NULL
    ORDER BY product_id DESC LIMIT {MEDIAN_OF}) p CROSS JOIN jsonb_array_elements(p.variants) v
"""  # noqa: S608 - put together from constants
KEPT_STOCK: Final = "(SELECT * FROM commerce_stock WHERE store_id = $1) k"
READ_STOCK: Final = "LATERAL stock_of($1, sold.product_id) k"
"""What is known not to be tracked has no `available`: it never runs out."""


async def best_sellers(
    database: Reader, shop: ShopKey, start: date, end: date, *, by: Ranking, limit: int
) -> list[Row]:
    """Rank the products sold from a day on until before another, in UTC, for each currency apart."""
    asked = (shop, start, end, by, limit)
    if not await sums.is_whole(database, shop):
        return await database.fetch(BEST_OF_ROWS, *asked)
    # Half a month at most is read day by day.
    first = next_month(start) if start.day > HALF_A_MONTH else start.replace(day=1)
    months = first, next_month(end - DAY)
    parts = abs((start - first).days) + (months[1] - first).days // SHORTEST_MONTH + 1
    leaders = (LOOKED_UP + LOOKED_UP_EACH * limit) // parts
    found = await database.fetch(BEST_OF_LEADERS[by], shop, start, end, limit, *months, leaders)
    if found[0]["is_certain"]:
        return [row for row in found if row["place"] is not None]
    return await database.fetch(BEST_OF_SUMS, *asked, *months)


async def running_out(
    database: Reader, shop: ShopKey, start: date, end: date, limit: int
) -> list[Row]:
    """List the variants that are left for the shortest time, had they sold on as in these days."""
    whole, known = await sums.is_whole(database, shop), await sums.knows_stock(database, shop)
    sql = RUNNING_OUT.format(
        sold=SOLD.format(sign="", span="day", start="$2", end="$3") if whole else LINES_SOLD,
        stock=KEPT_STOCK if known else READ_STOCK,
        quickest=QUICKEST,
    )
    return await database.fetch(sql, shop, start, end, limit)


async def median_price(database: Reader, shop: ShopKey) -> Decimal | None:
    """Tell what a variant of the newest thousand products costs, by their median."""
    row = await database.fetchrow(MEDIAN_PRICE, shop)
    return row["price"] if row else None


def next_month(day: date) -> date:
    """Give the first day of the month that follows."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
