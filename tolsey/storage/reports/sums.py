"""SQL for the sums of stores that triggers keep (migrations 0033, 0035, 0050, 0056, 0061, 0063, 0064, 0065 and 0101): building and checking them.

Who builds a store's sums and who writes its rows wait for each other. Two writers of one store do not: an
order's refunds, and a product's levels, are counted right because its actor alone writes them, and the commit
locks the actor's row before it writes (`storage.runtime.journal`).
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Database, Reader
from tolsey.storage.records.commerce.shops import ShopKey

STORES_AT_ONCE: Final = 500
ROWS_AT_ONCE: Final = 2_000
"""So many orders, or products, are counted in one statement: then the check can give way."""
LEAST, MOST = str(-(2**63)), str(2**63 - 1)
PSEUDONYMS, BEHIND_PSEUDONYMS = "s1:", "s2"
"""Between these lie all pseudonyms; what else stands in an order's place for them is counted nowhere."""
COUNTED: Final = "deleted_at IS NULL AND cancelled_at IS NULL AND NOT test"
UNLESS_BUILT: Final = "WHERE NOT EXISTS (SELECT 1 FROM commerce_sums WHERE store_id = $1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumRange:
    """Sums that are counted anew slice by slice, from `first` until `last`; `following` tells where one ends.

    A slice is from $2 until before $3. One statement checks it, so that rows and sums are seen at one
    moment, with the deliveries of that moment.
    """

    first: str
    last: str
    following: str
    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One kind of sums: how they are checked, forgotten and built."""

    name: str
    unbuilt: str
    parts: Sequence[SumRange]
    forget: str
    build: str


SALES: Final = SumRange(
    first="-infinity",
    last="infinity",
    following="""
    SELECT (date_bin('1 hour', processed_at, 'epoch') + interval '1 hour')::text AS until
    FROM commerce_orders WHERE store_id = $1 AND processed_at >= $2::text::timestamptz
    ORDER BY processed_at OFFSET $3 LIMIT 1
    """,
    check=f"""
    WITH counted AS (
        SELECT processed_at AS at, coalesce(source_name, 'unknown') AS source,
            coalesce(currency, '') AS currency, 1 AS orders, coalesce(total_minor, 0) AS gross,
            coalesce(current_total_minor, total_minor, 0) AS now_worth, 0 AS refunds, 0 AS refunded
        FROM commerce_orders
        WHERE store_id = $1 AND processed_at >= $2::text::timestamptz
          AND processed_at < $3::text::timestamptz AND {COUNTED}
        UNION ALL
        SELECT at, source, currency, 0, 0, 0, 1, amount_minor FROM commerce_counted_refunds
        WHERE store_id = $1 AND at >= $2::text::timestamptz
          AND at < $3::text::timestamptz AND NOT is_cancelled
    ), sales AS (
        SELECT minutes, date_bin(make_interval(mins => minutes), at, 'epoch'), source, currency,
            sum(orders)::bigint, sum(gross)::bigint, sum(now_worth)::bigint, sum(refunds)::bigint,
            sum(refunded)::bigint
        FROM counted CROSS JOIN (VALUES (15), (60)) AS w(minutes) GROUP BY 1, 2, 3, 4
    ), kept AS (
        SELECT minutes, at, source, currency, orders, gross_minor, current_minor, refunds,
            refunded_minor
        FROM commerce_sales
        WHERE store_id = $1 AND minutes IN (15, 60) AND at >= $2::text::timestamptz
          AND at < $3::text::timestamptz
          AND (orders, gross_minor, current_minor, refunds, refunded_minor) <> (0, 0, 0, 0, 0)
    )
    SELECT (SELECT count(*) FROM (TABLE sales EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE sales) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
SOLD: Final = SumRange(
    first="-infinity",
    last="infinity",
    following="""
    SELECT ((processed_at AT TIME ZONE 'UTC')::date + 1)::text AS until
    FROM commerce_orders
    WHERE store_id = $1 AND processed_at >= $2::text::date::timestamp AT TIME ZONE 'UTC'
    ORDER BY processed_at OFFSET $3 LIMIT 1
    """,
    check=f"""
    WITH sold AS (
        SELECT l.day, l.product_id, l.variant_id, l.currency, sum(l.units)::bigint,
            sum(l.kept_units)::bigint, sum(l.sold)
        FROM commerce_orders o CROSS JOIN LATERAL sold_lines(1, o.store_id, o.order_id,
            o.processed_at, o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts) l
        WHERE o.store_id = $1 AND o.processed_at >= $2::text::date::timestamp AT TIME ZONE 'UTC'
          AND o.processed_at < $3::text::date::timestamp AT TIME ZONE 'UTC'
        GROUP BY 1, 2, 3, 4
        HAVING sum(l.units) <> 0 OR sum(l.kept_units) <> 0 OR sum(l.sold) <> 0
    ), kept AS (
        SELECT day, product_id, variant_id, currency, units, kept_units, sold
        FROM commerce_product_sales
        WHERE store_id = $1 AND span = 'day' AND day >= $2::text::date AND day < $3::text::date
          AND (units, kept_units, sold) <> (0, 0, 0)
    )
    SELECT (SELECT count(*) FROM (TABLE sold EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE sold) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
SOLD_OF_MONTHS: Final = SumRange(
    first="-infinity",
    last="infinity",
    following="""
    SELECT min(day)::text AS until FROM commerce_product_sales
    WHERE store_id = $1 AND span = 'month' AND $3::bigint > 0 AND day > (
        SELECT min(day) FROM commerce_product_sales
        WHERE store_id = $1 AND span = 'month' AND day >= $2::text::date)
    """,
    check=f"""
    WITH sold AS (
        SELECT date_trunc('month', day)::date, product_id, currency, sum(units)::bigint,
            sum(kept_units)::bigint, sum(sold)
        FROM commerce_product_sales
        WHERE store_id = $1 AND span = 'day' AND day >= $2::text::date AND day < $3::text::date
        GROUP BY 1, 2, 3 HAVING sum(units) <> 0 OR sum(kept_units) <> 0 OR sum(sold) <> 0
    ), kept AS (
        SELECT day, product_id, currency, units, kept_units, sold FROM commerce_product_sales
        WHERE store_id = $1 AND span = 'month' AND day >= $2::text::date AND day < $3::text::date
          AND (units, kept_units, sold) <> (0, 0, 0)
    )
    SELECT (SELECT count(*) FROM (TABLE sold EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE sold) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
REFUNDS: Final = SumRange(
    first=LEAST,
    last=MOST,
    following="""
    SELECT min(order_id)::text AS until FROM commerce_orders
    WHERE store_id = $1 AND order_id > (
        SELECT order_id FROM commerce_orders WHERE store_id = $1 AND order_id >= $2::text::bigint
        ORDER BY order_id OFFSET $3 LIMIT 1)
    """,
    check=f"""
    WITH counted AS (
        SELECT r.refund_id, r.order_id, r.processed_at, coalesce(o.source_name, 'unknown'),
            r.currency, coalesce(r.amount_minor, 0), o.cancelled_at IS NOT NULL,
            coalesce(CASE WHEN o.cancelled_at IS NULL THEN r.reason ELSE o.cancel_reason END, 'unknown')
        FROM commerce_orders o JOIN commerce_refunds r USING (store_id, order_id)
        WHERE store_id = $1 AND order_id >= $2::text::bigint
          AND order_id < $3::text::bigint AND deleted_at IS NULL AND NOT test
          AND r.processed_at IS NOT NULL AND r.currency IS NOT NULL
    ), kept AS (
        SELECT refund_id, order_id, at, source, currency, amount_minor, is_cancelled, reason
        FROM commerce_counted_refunds
        WHERE store_id = $1 AND order_id >= $2::text::bigint
          AND order_id < $3::text::bigint
    )
    SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
REASONS: Final = SumRange(
    first=SOLD.first,
    last=SOLD.last,
    following="""
    SELECT ((at AT TIME ZONE 'UTC')::date + 1)::text AS until FROM commerce_counted_refunds
    WHERE store_id = $1 AND at >= $2::text::date::timestamp AT TIME ZONE 'UTC'
    ORDER BY at OFFSET $3 LIMIT 1
    """,
    check=f"""
    WITH counted AS (
        SELECT (at AT TIME ZONE 'UTC')::date, is_cancelled, reason, currency, count(*),
            sum(amount_minor)::bigint
        FROM commerce_counted_refunds
        WHERE store_id = $1 AND at >= $2::text::date::timestamp AT TIME ZONE 'UTC'
          AND at < $3::text::date::timestamp AT TIME ZONE 'UTC'
        GROUP BY 1, 2, 3, 4
    ), kept AS (
        SELECT day, is_cancelled, reason, currency, refunds, amount_minor
        FROM commerce_refund_reasons
        WHERE store_id = $1 AND day >= $2::text::date AND day < $3::text::date
          AND (refunds, amount_minor) <> (0, 0)
    )
    SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
BUYERS: Final = SumRange(
    first=PSEUDONYMS,
    last=BEHIND_PSEUDONYMS,
    following="""
    SELECT min(customer_hash) AS until FROM commerce_orders
    WHERE store_id = $1 AND customer_hash LIKE 's1:%' AND customer_hash > (
        SELECT customer_hash FROM commerce_orders WHERE store_id = $1 AND customer_hash >= $2
        ORDER BY customer_hash OFFSET $3 LIMIT 1)
    """,
    check=f"""
    WITH counted AS MATERIALIZED (
        SELECT customer_hash AS buyer, currency, processed_at AS at,
            coalesce(current_total_minor, total_minor) AS worth,
            coalesce(financial_status IN ('refunded', 'partially_refunded'), false) AS is_refunded
        FROM commerce_orders
        WHERE store_id = $1 AND customer_hash >= $2 AND customer_hash < $3
          AND {COUNTED} AND customer_hash LIKE 's1:%'
    ), buyers AS (
        SELECT buyer, count(*), count(*) FILTER (WHERE is_refunded), min(at), max(at)
        FROM counted GROUP BY 1
    ), kept_buyers AS (
        SELECT pseudonym, orders, refunded_orders, first_order_at, last_order_at FROM commerce_buyers
        WHERE store_id = $1 AND pseudonym >= $2 AND pseudonym < $3
    ), spending AS (
        SELECT buyer, currency, count(*), sum(worth)::bigint FROM counted
        WHERE currency IS NOT NULL AND worth IS NOT NULL GROUP BY 1, 2
    ), kept_spending AS (
        SELECT pseudonym, currency, orders, spent_minor FROM commerce_spending
        WHERE store_id = $1 AND pseudonym >= $2 AND pseudonym < $3
    )
    SELECT (SELECT count(*) FROM (TABLE buyers EXCEPT TABLE kept_buyers) a)
        + (SELECT count(*) FROM (TABLE kept_buyers EXCEPT TABLE buyers) a)
        + (SELECT count(*) FROM (TABLE spending EXCEPT TABLE kept_spending) a)
        + (SELECT count(*) FROM (TABLE kept_spending EXCEPT TABLE spending) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
COHORTS: Final = SumRange(
    first=PSEUDONYMS,
    last=BEHIND_PSEUDONYMS,
    # A month's buyers have pseudonyms of all letters: they are added up at once, from what is kept of each.
    following="SELECT NULL AS until FROM (SELECT $1::text, $2::text, $3::bigint) AS asked",
    check=f"""
    WITH counted AS (
        SELECT month, currency, sum(buyers)::bigint, sum(returning_buyers)::bigint,
            sum(orders)::bigint, sum(spent_minor)::bigint
        FROM cohorts_of(1, ARRAY(SELECT store_id FROM commerce_buyers
                WHERE store_id = $1 AND pseudonym >= $2 AND pseudonym < $3 ORDER BY pseudonym),
            ARRAY(SELECT pseudonym FROM commerce_buyers
                WHERE store_id = $1 AND pseudonym >= $2 AND pseudonym < $3 ORDER BY pseudonym))
        GROUP BY 1, 2
    ), kept AS (
        SELECT month, currency, buyers, returning_buyers, orders, spent_minor FROM commerce_cohorts
        WHERE store_id = $1
    ), differing AS (
        (TABLE counted EXCEPT TABLE kept) UNION ALL (TABLE kept EXCEPT TABLE counted)
    )
    SELECT (SELECT count(*) FROM differing AS d(month, currency, buyers, back, orders, spent)
        WHERE (buyers, back, orders, spent) <> (0, 0, 0, 0)) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
TOUCHES: Final = SumRange(
    first=LEAST,
    last=MOST,
    following=REFUNDS.following,
    check=f"""
    WITH asked AS (
        SELECT ARRAY(SELECT order_id FROM commerce_orders WHERE store_id = $1
            AND order_id >= $2::text::bigint AND order_id < $3::text::bigint) AS ids
    ), counted AS (
        SELECT t.* FROM asked, touches_of(array_fill($1::text, ARRAY[cardinality(ids)]), ids) t
    ), kept AS (
        SELECT * FROM commerce_counted_touches WHERE store_id = $1
          AND order_id >= $2::text::bigint AND order_id < $3::text::bigint
    )
    SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
ATTRIBUTION: Final = SumRange(
    first=SOLD.first,
    last=SOLD.last,
    following=SOLD.following,
    check=f"""
    WITH counted AS (
        SELECT t.day, t.source, t.medium, t.campaign, t.currency, count(*),
            sum(t.gross_minor)::bigint, sum(t.current_minor)::bigint
        FROM commerce_orders o JOIN commerce_counted_touches t USING (store_id, order_id)
        WHERE store_id = $1 AND o.processed_at >= $2::text::date::timestamp AT TIME ZONE 'UTC'
          AND o.processed_at < $3::text::date::timestamp AT TIME ZONE 'UTC'
        GROUP BY 1, 2, 3, 4, 5
    ), kept AS (
        SELECT day, source, medium, campaign, currency, orders, gross_minor, current_minor
        FROM commerce_attribution
        WHERE store_id = $1 AND day >= $2::text::date AND day < $3::text::date
          AND (orders, gross_minor, current_minor) <> (0, 0, 0)
    )
    SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong {UNLESS_BUILT}
    """,  # noqa: S608 - put together from constants
)
STOCK: Final = SumRange(
    first=LEAST,
    last=MOST,
    following="""
    SELECT min(product_id)::text AS until FROM commerce_products
    WHERE store_id = $1 AND product_id > (
        SELECT product_id FROM commerce_products
        WHERE store_id = $1 AND product_id >= $2::text::bigint
        ORDER BY product_id OFFSET $3 LIMIT 1)
    """,
    check="""
    WITH counted AS (
        SELECT s.* FROM commerce_products p CROSS JOIN LATERAL stock_of(p.store_id, p.product_id) s
        WHERE p.store_id = $1 AND p.product_id >= $2::text::bigint
          AND p.product_id < $3::text::bigint
    ), kept AS (
        SELECT * FROM commerce_stock WHERE store_id = $1 AND product_id >= $2::text::bigint
          AND product_id < $3::text::bigint
    )
    SELECT (SELECT count(*) FROM (TABLE counted EXCEPT TABLE kept) a)
        + (SELECT count(*) FROM (TABLE kept EXCEPT TABLE counted) a) AS wrong
    WHERE NOT EXISTS (SELECT 1 FROM commerce_stock_unread WHERE store_id = $1)
    """,
)
PRODUCTS: Final = SumRange(
    first=LEAST,
    last=MOST,
    # One number of a store: it is counted at once, from an index.
    following="SELECT NULL AS until FROM (SELECT $1::text, $2::text, $3::bigint) AS asked",
    check="""
    SELECT ((
        SELECT count(*) FROM commerce_products
        WHERE store_id = $1 AND deleted_at IS NULL
          AND product_id BETWEEN $2::text::bigint AND $3::text::bigint
    ) IS DISTINCT FROM coalesce((
        SELECT products FROM commerce_product_counts WHERE store_id = $1
    ), 0))::integer AS wrong
    WHERE NOT EXISTS (SELECT 1 FROM commerce_stock_unread WHERE store_id = $1)
    """,
)

ORDERS: Final = Kept(
    name="orders",
    unbuilt="SELECT store_id FROM commerce_sums ORDER BY store_id",
    parts=(SALES, SOLD, SOLD_OF_MONTHS, REFUNDS, REASONS, BUYERS, COHORTS, TOUCHES, ATTRIBUTION),
    forget="SELECT forget_sums($1)",
    build="SELECT build_sums($1, $2) AS counted",
)
VARIANTS: Final = Kept(
    name="stock",
    unbuilt="SELECT store_id FROM commerce_stock_unread ORDER BY store_id",
    parts=(STOCK, PRODUCTS),
    forget="SELECT forget_stock($1)",
    build="SELECT build_stock($1, $2) AS counted",
)
KINDS: Final = (ORDERS, VARIANTS)


async def knows_stock(database: Reader, shop: ShopKey) -> bool:
    """Tell whether the stock of all of a store's products is kept; else its report reads them."""
    row = await database.fetchrow("SELECT 1 FROM commerce_stock_unread WHERE store_id = $1", shop)
    return row is None


async def is_whole(database: Reader, shop: ShopKey) -> bool:
    """Tell whether a store's sums hold all of its orders; else its reports count rows."""
    row = await database.fetchrow("SELECT 1 FROM commerce_sums WHERE store_id = $1", shop)
    return row is None


async def unbuilt(database: Database, kept: Kept) -> list[str]:
    """List the stores whose sums are not whole."""
    rows = await database.fetch(kept.unbuilt)
    return [row["store_id"] for row in rows]


async def build(database: Database, kept: Kept, store_id: str, most: int) -> int:
    """Count more rows of a store into its sums; answer how many, fewer than asked when it is whole."""
    (row,) = await database.fetch(kept.build, store_id, most)
    return int(row["counted"])


SUMMED: Final = (
    "commerce_orders",
    "commerce_products",
    "attribution_touches",
    "commerce_sales",
    "commerce_product_sales",
    "commerce_cohorts",
    "commerce_attribution",
    "commerce_counted_touches",
    "commerce_counted_refunds",
    "commerce_refund_reasons",
    "commerce_buyers",
    "commerce_spending",
    "commerce_stock",
    "commerce_product_counts",
)
"""What sums are made of, and the sums."""
NEXT: Final = "SELECT least({}) AS id".format(
    ", ".join(
        f"(SELECT min(store_id) FROM {table} WHERE store_id > {{after}})"  # noqa: S608 - names of our own tables
        for table in SUMMED
    )
)
KNOWN: Final = f"""
WITH RECURSIVE known AS (
    {NEXT.format(after="$1::text")}
    UNION ALL SELECT following.id FROM known CROSS JOIN LATERAL ({NEXT.format(after="known.id")})
    AS following WHERE known.id IS NOT NULL
)
SELECT id FROM known WHERE id IS NOT NULL LIMIT $2
"""  # noqa: S608 - put together from constants
"""From one to the next by the index of each table: a sum that outlives its store is wrong, and is found.

Most stores of a large service have nothing: each would cost twenty questions.
"""


async def stores(database: Database) -> AsyncIterator[str]:
    """List the stores that have something to be summed up, or sums: deleted ones and those that are gone too."""
    after = ""
    while True:
        rows = await database.fetch(KNOWN, after, STORES_AT_ONCE)
        for row in rows:
            yield row["id"]
        if len(rows) < STORES_AT_ONCE:
            return
        after = rows[-1]["id"]


async def differences(database: Database, kept: Kept, store_id: str) -> AsyncIterator[int]:
    """Hold a store's sums against a recount of its rows; give of each slice how many are not as counted."""
    for part in kept.parts:
        start = part.first
        while start != part.last:
            found = await database.fetch(part.following, store_id, start, ROWS_AT_ONCE)
            until = (found[0]["until"] if found else None) or part.last
            rows = await database.fetch(part.check, store_id, start, until)
            yield rows[0]["wrong"] if rows else 0
            start = until


async def forget(database: Database, kept: Kept, store_id: str) -> None:
    """Count a store's sums for nothing any more: `build` drops and builds them, until then its reports count rows."""
    await database.execute(kept.forget, store_id)
