"""SQL for what a store is, its listings, and what was done in it."""

from datetime import datetime
from typing import Final

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports.prefixes import MOST
from tolsey.storage.selling.listings import VIEW, ListingView, read_view

SUMMARY: Final = """
SELECT s.id, s.name, s.created_at, p.shop_domain, p.name AS shop_name, p.currency, p.timezone,
    p.country, p.primary_domain, p.plan_display_name,
    CASE WHEN NOT $2 THEN NULL
        WHEN EXISTS (SELECT 1 FROM commerce_stock_unread u WHERE u.store_id = $5) THEN (
        SELECT count(*) FROM commerce_products c WHERE c.store_id = $5 AND c.deleted_at IS NULL
    ) ELSE coalesce((
        SELECT n.products FROM commerce_product_counts n WHERE n.store_id = $5
    ), 0) END AS products,
    CASE WHEN $3 THEN (
        SELECT coalesce(sum(k.orders), 0)::bigint FROM commerce_sales k
        WHERE k.store_id = $5 AND k.minutes = 60 AND k.at >= kept.since
    ) + (
        SELECT count(*) FROM commerce_orders c
        WHERE c.store_id = $5 AND c.deleted_at IS NULL AND c.cancelled_at IS NULL AND NOT c.test
          AND c.processed_at >= $4 AND c.processed_at < kept.since
    ) END AS orders
FROM stores s LEFT JOIN store_shops p ON p.store_id = s.id
CROSS JOIN LATERAL (
    SELECT CASE WHEN EXISTS (SELECT 1 FROM commerce_sums b WHERE b.store_id = $5) THEN 'infinity'
        ELSE date_bin('1 hour', $4::timestamptz - interval '1 microsecond', 'epoch') + interval '1 hour'
        END::timestamptz AS since
) kept
WHERE s.id = $1 AND s.deleted_at IS NULL
"""
"""Orders are those of the hours that are kept, and those of the hour that the time is in."""
LISTINGS: Final = f"""{VIEW}
  AND l.store_id = $1 AND l.organization_id = $2
ORDER BY l.id DESC LIMIT 20
"""
ROW: Final = """
SELECT id, event, actor, created_at,
    (metadata - ARRAY['payload', 'before', 'after'])::text AS detail
FROM audit_log
WHERE subject = $1 AND (organization_id = $2 OR organization_id IS NULL)
  AND event NOT LIKE 'admin.%'
"""
AUDIT: Final = f"{ROW} AND id < $3 ORDER BY id DESC LIMIT $4"
AUDIT_OF_EVENTS: Final = f"""
WITH RECURSIVE named(event) AS (
    (SELECT event FROM audit_log WHERE subject = $1 AND event COLLATE "C" >= $5
    ORDER BY event COLLATE "C" LIMIT 1)
    UNION ALL
    SELECT (
        SELECT event FROM audit_log WHERE subject = $1 AND event COLLATE "C" > named.event
        ORDER BY event COLLATE "C" LIMIT 1)
    FROM named WHERE starts_with(named.event, $5)
)
SELECT found.* FROM named
CROSS JOIN LATERAL ({ROW}
    AND event COLLATE "C" >= named.event AND (event COLLATE "C", id) < (named.event, $3)
    ORDER BY event COLLATE "C" DESC, id DESC LIMIT $4
) AS found
WHERE starts_with(named.event, $5)
ORDER BY found.id DESC LIMIT $4
"""  # noqa: S608 - put together from constants
"""There are few names of events: each that begins so is found in one step, and its newest rows.

The one name is said as a range: then no index but that of events can serve the order.
"""


async def summary(
    database: Reader,
    store_id: str,
    shop: ShopKey,
    *,
    products: bool,
    orders: bool,
    since: datetime,
) -> Row | None:
    """Read a store and its shop; with how many products, and orders since a moment, if wanted."""
    return await database.fetchrow(SUMMARY, store_id, products, orders, since, shop)


async def connected_at(database: Reader, store_id: str) -> datetime | None:
    """Say when a store was last connected to its shop; None when it never was."""
    row = await database.fetchrow(
        "SELECT connected_at FROM integration_connections"
        " WHERE store_id = $1 AND provider = 'commerce'",
        store_id,
    )
    return row["connected_at"] if row else None


async def listings(database: Reader, store_id: str, organization_id: str) -> list[ListingView]:
    """Read the listings of a store, newest first."""
    rows = await database.fetch(LISTINGS, store_id, organization_id)
    return [read_view(row) for row in rows]


async def audit(
    database: Reader,
    store_id: str,
    organization_id: str,
    before: int | None,
    limit: int,
    *,
    event: str | None = None,
) -> list[Row]:
    """List what was done in a store, newest first; of events that begin so, when it is said.

    What operators did, and the extracts of what was delivered or changed, are left out.
    """
    asked = (store_id, organization_id, before or MOST, limit)
    if event is None:
        return await database.fetch(AUDIT, *asked)
    return await database.fetch(AUDIT_OF_EVENTS, *asked, event)


async def shop_domain(database: Reader, store_id: str) -> str | None:
    """Name the shop a store is, or was last, connected to."""
    row = await database.fetchrow(
        "SELECT shop_domain FROM store_shops WHERE store_id = $1", store_id
    )
    return row["shop_domain"] if row else None
