"""SQL for the sums of stores that triggers keep (migrations 0033 and 0035): building and checking them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Database, Reader

STORES_AT_ONCE: Final = 500
CHECK: Final = """
WITH orders AS (
    SELECT order_id, processed_at AS at, coalesce(source_name, 'unknown') AS source,
        coalesce(currency, '') AS currency, coalesce(total_minor, 0) AS gross,
        coalesce(current_total_minor, total_minor, 0) AS now_worth, customer_hash
    FROM commerce_orders
    WHERE store_id = $1 AND deleted_at IS NULL AND cancelled_at IS NULL AND NOT test
), counted AS (
    SELECT at, source, currency, 1 AS orders, gross, now_worth, 0 AS refunds, 0 AS refunded
    FROM orders WHERE at IS NOT NULL
    UNION ALL
    SELECT r.processed_at, o.source, r.currency, 0, 0, 0, 1, coalesce(r.amount_minor, 0)
    FROM commerce_refunds r JOIN orders o USING (order_id)
    WHERE r.store_id = $1 AND r.processed_at IS NOT NULL AND r.currency IS NOT NULL
), sales AS (
    SELECT minutes, date_bin(make_interval(mins => minutes), at, 'epoch'), source, currency,
        sum(orders)::bigint, sum(gross)::bigint, sum(now_worth)::bigint, sum(refunds)::bigint,
        sum(refunded)::bigint
    FROM counted CROSS JOIN (VALUES (15), (60)) AS w(minutes) GROUP BY 1, 2, 3, 4
), kept_sales AS (
    SELECT minutes, at, source, currency, orders, gross_minor, current_minor, refunds, refunded_minor
    FROM commerce_sales
    WHERE store_id = $1 AND (orders, gross_minor, current_minor, refunds, refunded_minor)
        <> (0, 0, 0, 0, 0)
), buyers AS (
    SELECT customer_hash, count(*) FROM orders WHERE customer_hash LIKE 's1:%' GROUP BY 1
), kept_buyers AS (
    SELECT pseudonym, orders FROM commerce_buyers WHERE store_id = $1
)
SELECT (SELECT count(*) FROM (TABLE sales EXCEPT TABLE kept_sales) a)
    + (SELECT count(*) FROM (TABLE kept_sales EXCEPT TABLE sales) a)
    + (SELECT count(*) FROM (TABLE buyers EXCEPT TABLE kept_buyers) a)
    + (SELECT count(*) FROM (TABLE kept_buyers EXCEPT TABLE buyers) a) AS wrong
WHERE NOT EXISTS (SELECT 1 FROM commerce_sums WHERE store_id = $1)
"""
"""One statement, so that rows and sums are seen at one moment, with the deliveries of that moment."""


STOCK: Final = """
WITH counted AS (
    SELECT s.* FROM commerce_products p CROSS JOIN LATERAL stock_of(p.store_id, p.product_id) s
    WHERE p.store_id = $1
), kept AS (SELECT * FROM commerce_stock WHERE store_id = $1)
SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
    + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong
WHERE NOT EXISTS (SELECT 1 FROM commerce_stock_unread WHERE store_id = $1)
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """One kind of sums: how they are checked, forgotten and built."""

    name: str
    unbuilt: str
    check: str
    forget: str
    build: str


ORDERS: Final = Kept(
    "orders",
    "SELECT store_id FROM commerce_sums ORDER BY store_id",
    CHECK,
    "SELECT forget_sums($1)",
    "SELECT build_sums($1, $2) AS counted",
)
VARIANTS: Final = Kept(
    "stock",
    "SELECT store_id FROM commerce_stock_unread ORDER BY store_id",
    STOCK,
    "SELECT forget_stock($1)",
    "SELECT build_stock($1, $2) AS counted",
)
KINDS: Final = (ORDERS, VARIANTS)


async def knows_stock(database: Reader, store_id: str) -> bool:
    """Tell whether the stock of all of a store's products is kept; else its report reads them."""
    row = await database.fetchrow(
        "SELECT 1 FROM commerce_stock_unread WHERE store_id = $1", store_id
    )
    return row is None


async def is_whole(database: Reader, store_id: str) -> bool:
    """Tell whether a store's sums hold all of its orders; else its reports count rows."""
    row = await database.fetchrow("SELECT 1 FROM commerce_sums WHERE store_id = $1", store_id)
    return row is None


async def unbuilt(database: Database, kept: Kept) -> list[str]:
    """List the stores whose sums are not whole."""
    rows = await database.fetch(kept.unbuilt)
    return [row["store_id"] for row in rows]


async def build(database: Database, kept: Kept, store_id: str, most: int) -> int:
    """Count more rows of a store into its sums; answer how many, fewer than asked when it is whole."""
    (row,) = await database.fetch(kept.build, store_id, most)
    return int(row["counted"])


async def stores(database: Database) -> AsyncIterator[str]:
    """List the stores that have orders or sums, deleted ones too."""
    after = ""
    while True:
        rows = await database.fetch(
            "SELECT id FROM stores WHERE id > $1 ORDER BY id LIMIT $2", after, STORES_AT_ONCE
        )
        for row in rows:
            yield row["id"]
        if len(rows) < STORES_AT_ONCE:
            return
        after = rows[-1]["id"]


async def differences(database: Database, kept: Kept, store_id: str) -> int:
    """Hold a store's sums against a recount of its rows; answer how many sums are not as counted."""
    rows = await database.fetch(kept.check, store_id)
    return rows[0]["wrong"] if rows else 0


async def forget(database: Database, kept: Kept, store_id: str) -> None:
    """Drop a store's sums, so that they are built anew; until then its reports count rows."""
    await database.execute(kept.forget, store_id)
