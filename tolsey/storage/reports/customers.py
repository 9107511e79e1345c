"""SQL for a store's buyers, known only by the store's own pseudonym of each."""

from typing import Final

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import sums

MANY: Final = 2**63 - 1
"""More orders than anyone makes: where the list begins."""
NEXT_BUYER: Final = """
SELECT min(customer_hash) FROM commerce_orders
WHERE store_id = $1 AND customer_hash >= 's1:' AND customer_hash < 's2'
  AND customer_hash LIKE 's1:%' AND deleted_at IS NULL AND customer_hash > {after}
"""
KNOWN: Final = f"""
WITH RECURSIVE bought(pseudonym, place) AS (
    SELECT ({NEXT_BUYER.format(after="$2::text")}), 1
    UNION ALL
    SELECT ({NEXT_BUYER.format(after="bought.pseudonym")}), place + 1 FROM bought
    WHERE bought.pseudonym IS NOT NULL AND place < $3
)
SELECT pseudonym FROM bought WHERE pseudonym IS NOT NULL
UNION
(SELECT DISTINCT email_hash FROM commerce_customers
WHERE store_id = $1 AND email_hash LIKE 's1:%' AND deleted_at IS NULL AND email_hash > $2
ORDER BY email_hash LIMIT $3)
ORDER BY pseudonym LIMIT $3
"""  # noqa: S608 - put together from constants
"""From one buyer to the next, however many orders each made.

Older rows hold a digest that is the same in every store: that is no pseudonym of this one.
"""
BUSIEST: Final = """
(SELECT pseudonym, orders FROM commerce_buyers
WHERE store_id = $1 AND orders = $2 AND pseudonym > $3 ORDER BY pseudonym LIMIT $4)
UNION ALL
(SELECT pseudonym, orders FROM commerce_buyers
WHERE store_id = $1 AND orders < $2 AND orders > 0 ORDER BY orders DESC, pseudonym LIMIT $4)
ORDER BY orders DESC, pseudonym LIMIT $4
"""
BUSIEST_OF_ROWS: Final = """
SELECT customer_hash AS pseudonym, count(*) AS orders FROM commerce_orders
WHERE store_id = $1 AND customer_hash LIKE 's1:%' AND deleted_at IS NULL
  AND cancelled_at IS NULL AND NOT test
GROUP BY customer_hash
HAVING count(*) < $2 OR (count(*) = $2 AND customer_hash > $3)
ORDER BY count(*) DESC, customer_hash LIMIT $4
"""
COUNTS: Final = """
SELECT wanted.pseudonym, coalesce(b.orders, 0) AS orders, b.first_order_at, b.last_order_at,
    coalesce(b.refunded_orders, 0) AS refunded_orders, (
        SELECT coalesce(json_agg(json_build_array(currency, spent_minor) ORDER BY currency), '[]')::text
        FROM commerce_spending s WHERE s.store_id = $1 AND s.pseudonym = wanted.pseudonym
    ) AS spent
FROM unnest($2::text[]) WITH ORDINALITY AS wanted(pseudonym, place)
LEFT JOIN commerce_buyers b ON b.store_id = $1 AND b.pseudonym = wanted.pseudonym
ORDER BY wanted.place
"""
COUNTS_OF_ROWS: Final = """
SELECT wanted.pseudonym, bought.*
FROM unnest($2::text[]) WITH ORDINALITY AS wanted(pseudonym, place)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(orders), 0)::bigint AS orders, min(first_order_at) AS first_order_at,
        max(last_order_at) AS last_order_at,
        coalesce(sum(refunded_orders), 0)::bigint AS refunded_orders,
        coalesce(json_agg(json_build_array(currency, minor) ORDER BY currency)
            FILTER (WHERE currency IS NOT NULL AND minor IS NOT NULL), '[]')::text AS spent
    FROM (
        SELECT currency, count(*) AS orders, min(processed_at) AS first_order_at,
            max(processed_at) AS last_order_at,
            count(*) FILTER (WHERE financial_status IN ('refunded', 'partially_refunded'))
                AS refunded_orders,
            sum(coalesce(current_total_minor, total_minor))::bigint AS minor
        FROM commerce_orders o
        WHERE o.store_id = $1 AND o.customer_hash = wanted.pseudonym AND o.deleted_at IS NULL
          AND o.cancelled_at IS NULL AND NOT o.test
        GROUP BY currency
    ) of_currency
) bought
ORDER BY wanted.place
"""
COHORTS: Final = """
SELECT month, buyers, returning_buyers, orders, spent FROM (
    SELECT month, sum(buyers)::bigint AS buyers, sum(returning_buyers)::bigint AS returning_buyers,
        sum(orders)::bigint AS orders,
        coalesce(json_agg(json_build_array(currency, spent_minor) ORDER BY currency)
            FILTER (WHERE currency <> '' AND spent_minor <> 0), '[]')::text AS spent
    FROM ({cohorts}) AS parts GROUP BY month
) AS added WHERE buyers > 0 ORDER BY month DESC LIMIT $2
"""
COHORTS_OF_SUMS: Final = COHORTS.format(
    cohorts="SELECT * FROM commerce_cohorts WHERE store_id = $1"
)
BOUGHT: Final = """
WITH bought AS MATERIALIZED (
    SELECT customer_hash, min(processed_at) AS first_at, count(*) AS orders FROM commerce_orders
    WHERE store_id = $1 AND customer_hash LIKE 's1:%' AND deleted_at IS NULL
      AND cancelled_at IS NULL AND NOT test
    GROUP BY customer_hash HAVING min(processed_at) IS NOT NULL
)
"""
COHORTS_OF_ROWS: Final = BOUGHT + COHORTS.format(
    cohorts="""
    SELECT date_trunc('month', first_at AT TIME ZONE 'UTC')::date AS month, '' AS currency,
        count(*) AS buyers, count(*) FILTER (WHERE orders > 1) AS returning_buyers,
        sum(orders) AS orders, 0 AS spent_minor
    FROM bought GROUP BY 1
    UNION ALL
    SELECT date_trunc('month', first_at AT TIME ZONE 'UTC')::date, o.currency, 0, 0, 0,
        sum(coalesce(o.current_total_minor, o.total_minor))::bigint
    FROM bought JOIN commerce_orders o ON o.store_id = $1 AND o.customer_hash = bought.customer_hash
    WHERE o.deleted_at IS NULL AND o.cancelled_at IS NULL AND NOT o.test AND o.currency IS NOT NULL
      AND coalesce(o.current_total_minor, o.total_minor) IS NOT NULL
    GROUP BY 1, 2
    """
)


async def by_pseudonym(database: Reader, shop: ShopKey, after: str, limit: int) -> list[str]:
    """List buyers by pseudonym, those without an order too."""
    return [row["pseudonym"] for row in await database.fetch(KNOWN, shop, after, limit)]


async def busiest(
    database: Reader, shop: ShopKey, after: tuple[int, str] | None, limit: int
) -> list[Row]:
    """List buyers by how many orders they made, the most first."""
    orders, pseudonym = after or (MANY, "")
    sql = BUSIEST if await sums.is_whole(database, shop) else BUSIEST_OF_ROWS
    return await database.fetch(sql, shop, orders, pseudonym, limit)


async def counts(database: Reader, shop: ShopKey, pseudonyms: list[str]) -> list[Row]:
    """Count what each of these bought, in their order; `spent` is JSON text of [currency, minor]."""
    sql = COUNTS if await sums.is_whole(database, shop) else COUNTS_OF_ROWS
    return await database.fetch(sql, shop, pseudonyms)


async def cohorts(database: Reader, shop: ShopKey, months: int) -> list[Row]:
    """Count buyers by the month of their first order, in UTC, the latest first; `spent` as in `counts`."""
    sql = COHORTS_OF_SUMS if await sums.is_whole(database, shop) else COHORTS_OF_ROWS
    return await database.fetch(sql, shop, months)


async def is_known(database: Reader, shop: ShopKey, pseudonym: str) -> bool:
    """Tell whether the store has such a buyer."""
    row = await database.fetchrow(
        """
        SELECT EXISTS (
            SELECT 1 FROM commerce_orders
            WHERE store_id = $1 AND customer_hash = $2 AND deleted_at IS NULL
        ) OR EXISTS (
            SELECT 1 FROM commerce_customers
            WHERE store_id = $1 AND email_hash = $2 AND deleted_at IS NULL
        ) AS is_known
        """,
        shop,
        pseudonym,
    )
    return bool(row and row["is_known"])
