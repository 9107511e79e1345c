"""SQL for what was sold of each product: what sells best, and how fast stock goes."""

from datetime import date, timedelta
from typing import Final, Literal

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import sums

Ranking = Literal["revenue", "units"]

MOST_ROWS: Final = 500
DAY: Final = timedelta(days=1)
HALF_A_MONTH: Final = 15
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
RUNNING_OUT: Final = """
WITH sold AS MATERIALIZED (
    SELECT product_id, variant_id, sum(kept_units)::bigint AS units FROM ({sold}) AS parts
    WHERE variant_id <> 0
    GROUP BY 1, 2 HAVING sum(kept_units) > 0
)
SELECT k.product_id, p.title AS product, k.variant_id, v->>'title' AS variant, v->>'sku' AS sku,
    k.available, k.units
FROM (
    SELECT k.product_id, k.variant_id, k.place, k.available, sold.units
    FROM sold JOIN {stock} ON k.product_id = sold.product_id AND k.variant_id = sold.variant_id
    WHERE k.available > 0 AND k.is_listed
    ORDER BY k.available::float / sold.units, k.variant_id LIMIT $4
) k
JOIN commerce_products p ON p.store_id = $1 AND p.product_id = k.product_id
CROSS JOIN LATERAL (SELECT p.variants->(k.place - 1)::int AS v) AS said
ORDER BY k.available::float / k.units, k.variant_id
"""
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
    first = _next_month(start) if start.day > HALF_A_MONTH else start.replace(day=1)
    return await database.fetch(BEST_OF_SUMS, *asked, first, _next_month(end - DAY))


async def running_out(
    database: Reader, shop: ShopKey, start: date, end: date, limit: int
) -> list[Row]:
    """List the variants that are left for the shortest time, had they sold on as in these days."""
    whole, known = await sums.is_whole(database, shop), await sums.knows_stock(database, shop)
    sql = RUNNING_OUT.format(
        sold=SOLD.format(sign="", span="day", start="$2", end="$3") if whole else LINES_SOLD,
        stock=KEPT_STOCK if known else READ_STOCK,
    )
    return await database.fetch(sql, shop, start, end, limit)


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
