"""SQL for a store's products and their stock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import sums
from tolsey.storage.reports.prefixes import MOST, numbers_like

COLUMNS: Final = """
p.product_id, p.title, p.handle, p.vendor, p.product_type, p.status, p.tags, p.variant_count,
p.published_at, p.created_at_platform, p.updated_at
"""
PAGE: Final = f"""
SELECT {COLUMNS} FROM commerce_products p
WHERE p.store_id = $1 AND p.deleted_at IS NULL AND ($2::bigint IS NULL OR p.product_id < $2)
  AND ($4::text IS NULL OR p.status = $4)
  AND ($5::text IS NULL OR folded(p.vendor) = folded($5))
  AND ($6::text IS NULL OR folded(p.product_type) = folded($6))
ORDER BY p.product_id DESC LIMIT $3
"""  # noqa: S608 - a constant list of columns
WORDS: Final = "product_words(p.title, p.handle, p.vendor, p.product_type, p.tags, p.variants)"
NEWEST: Final = 32
"""So many products are looked through one by one, before anything tells how many are meant."""
WALKED: Final = 64 * NEWEST
"""So many more are at most, where an index would tell of more than are looked through for the page."""
FEWEST: Final = -(2**63)
"""Less than any stock and any id: where the report of what runs out begins."""
LOOKED_THROUGH: Final = f"""
WITH newest AS (
    SELECT * FROM commerce_products
    WHERE store_id = $1 AND deleted_at IS NULL AND product_id < $2
    ORDER BY product_id DESC LIMIT {NEWEST}
),
found AS (SELECT p.* FROM newest p {{matching}}),
next AS (
    SELECT * FROM commerce_products
    WHERE store_id = $1 AND deleted_at IS NULL AND product_id < (SELECT min(product_id) FROM newest)
    ORDER BY product_id DESC
    LIMIT (
        -- A look at one costs as much as twelve that the index tells of; among these $3 are, twice over.
        SELECT CASE WHEN coalesce((
                SELECT n.products FROM commerce_product_counts n WHERE n.store_id = $1
            ), 0) * hits * hits / {NEWEST * NEWEST} >= 12 * $3
            THEN least({WALKED}, 2 * $3 * {NEWEST} / hits) ELSE 0 END
        FROM (SELECT count(*) AS hits FROM found) AS counted)
),
older AS (
    SELECT p.product_id FROM commerce_products p
    WHERE p.store_id || '' = $1 AND p.deleted_at IS NULL AND p.product_id + 0 < (
        SELECT min(product_id)
        FROM (SELECT product_id FROM newest UNION ALL SELECT product_id FROM next) AS seen)
      AND store_grams(p.store_id, {WORDS}) @> ARRAY(
        SELECT unnest(store_grams($1, folded(word))) FROM unnest($4::text[]) AS word)
    ORDER BY p.product_id DESC OFFSET 0
)
SELECT {COLUMNS} FROM (
    TABLE found
    UNION ALL
    SELECT p.* FROM next p {{matching}}
    UNION ALL
    SELECT p.* FROM older CROSS JOIN LATERAL (
        SELECT * FROM commerce_products c
        WHERE c.store_id = $1 AND c.product_id = older.product_id OFFSET 0
    ) p {{matching}}
) p LIMIT $3
"""  # noqa: S608 - put together from constants
"""Products before `$2` that match and may hold all words `$4`, newest first, each read as it is asked for.

What a large part of many products has is found among the newest, however many there are; else the
index of words tells, and no more than the ids of those that it tells of are sorted. `OFFSET 0` keeps
the planner from turning the parts around. Store and number are part of expressions, so that the
index of words is used alone: through the key, every product of the store would be read.
"""
HOLDING: Final = f"""
CROSS JOIN LATERAL (SELECT {WORDS} AS words OFFSET 0) AS said
WHERE NOT EXISTS (
    SELECT 1 FROM unnest($4::text[]) AS word WHERE strpos(said.words, folded(word)) = 0)
"""  # noqa: S608 - put together from constants
SEARCH: Final = LOOKED_THROUGH.format(matching=HOLDING)
ENTITLED: Final = LOOKED_THROUGH.format(
    matching="WHERE strpos(folded(p.title), folded(($4::text[])[1])) > 0"
)
STOCK: Final = """
jsonb_array_elements(p.variants) WITH ORDINALITY AS said(v, place)
CROSS JOIN LATERAL (
    SELECT sum(l.available)::bigint AS available, bool_or(l.available IS NOT NULL) AS counted
    FROM commerce_inventory_levels l
    WHERE l.store_id = p.store_id AND l.inventory_item_id = (v->>'inventoryItemId')::bigint
) levels
CROSS JOIN LATERAL (
    SELECT coalesce((v->>'tracked')::boolean, levels.counted) AS tracked
) known
CROSS JOIN LATERAL (
    SELECT CASE WHEN known.tracked IS NOT FALSE
        THEN coalesce(levels.available, (v->>'inventoryQuantity')::bigint) END AS available
) stock
"""
"""The variants of a product `p`, and how many of each are left: NULL where nobody counts them.

Levels tell more than the product's own quantity: they came later, and from every location. One
without a quantity is of an item that is not tracked, unless the product says that it is; where
neither says so, as in products of revision 2026-07 whose stock never moved, nobody knows.
"""
ONE: Final = f"""
SELECT {COLUMNS}, s.currency, (
    SELECT coalesce(jsonb_agg(v || jsonb_build_object('tracked', known.tracked,
        'inventoryQuantity', stock.available) ORDER BY place), '[]')::text FROM {STOCK}
) AS variants
FROM commerce_products p
LEFT JOIN shops_of_stores k ON k.shop_key = p.store_id
LEFT JOIN store_shops s ON s.store_id = coalesce(k.store_id, p.store_id)
WHERE p.store_id = $1 AND p.product_id = $2 AND p.deleted_at IS NULL
"""  # noqa: S608 - a constant list of columns
LEVELS: Final = """
SELECT inventory_item_id, location_id, available, updated_at FROM commerce_inventory_levels
WHERE store_id = $1
  AND ($2::bigint IS NULL OR (inventory_item_id, location_id) > ($2, $3::bigint))
  AND ($5::bigint IS NULL OR location_id = $5)
  AND ($6::bigint[] IS NULL OR inventory_item_id = ANY($6))
ORDER BY inventory_item_id, location_id LIMIT $4
"""
ITEMS_OF_PRODUCT: Final = """
SELECT (v->>'inventoryItemId')::bigint AS item FROM commerce_products p
CROSS JOIN LATERAL jsonb_array_elements(p.variants) AS v
WHERE p.store_id = $1 AND p.product_id = $2 AND p.deleted_at IS NULL
  AND v->>'inventoryItemId' IS NOT NULL
"""
LOW: Final = """
SELECT k.product_id, p.title AS product, k.variant_id, v->>'title' AS variant, v->>'sku' AS sku,
    k.item, k.tracked, k.available
FROM (
    SELECT * FROM commerce_stock
    WHERE store_id = $1 AND available <= $2 AND (available, variant_id) > ($4, $5)
      AND ($6 OR is_listed)
    ORDER BY available, variant_id LIMIT $3
) k
JOIN commerce_products p ON p.store_id = k.store_id AND p.product_id = k.product_id
CROSS JOIN LATERAL (SELECT p.variants->(k.place - 1)::int AS v) AS said
ORDER BY k.available, k.variant_id
"""
LOW_OF_ROWS: Final = f"""
SELECT * FROM (
    SELECT p.product_id, p.title AS product, (v->>'id')::bigint AS variant_id,
        v->>'title' AS variant, v->>'sku' AS sku, (v->>'inventoryItemId')::bigint AS item,
        known.tracked, stock.available
    FROM commerce_products p CROSS JOIN LATERAL {STOCK}
    WHERE p.store_id = $1 AND p.deleted_at IS NULL AND ($6 OR p.status = 'active')
) AS counted
WHERE available <= $2 AND (available, variant_id) > ($4, $5)
ORDER BY available, variant_id LIMIT $3
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFilter:
    """Which products; what is None leaves all of them in."""

    status: str | None = None
    vendor: str | None = None
    product_type: str | None = None


async def page(
    database: Reader, shop: ShopKey, wanted: ProductFilter, before: int | None, limit: int
) -> list[Row]:
    """List products, the latest made first, after a product of the page before."""
    return await database.fetch(
        PAGE,
        shop,
        before,
        limit,
        wanted.status,
        wanted.vendor,
        wanted.product_type,
    )


async def search(
    database: Reader, shop: ShopKey, words: Sequence[str], before: int | None, limit: int
) -> list[Row]:
    """Find the products that have every one of these words, with or without accents, the latest made first."""
    return await database.fetch(SEARCH, shop, before or MOST, limit, list(words))


async def find(database: Reader, shop: ShopKey, product_id: int) -> Row | None:
    """Read one product with its variants and their stock (JSON text), and the shop's currency."""
    return await database.fetchrow(ONE, shop, product_id)


async def items_of(database: Reader, shop: ShopKey, product_id: int) -> list[int]:
    """List the inventory items of a product's variants."""
    rows = await database.fetch(ITEMS_OF_PRODUCT, shop, product_id)
    return [row["item"] for row in rows]


async def levels(
    database: Reader,
    shop: ShopKey,
    after: tuple[int, int] | None,
    limit: int,
    *,
    location_id: int | None = None,
    items: Sequence[int] | None = None,
) -> list[Row]:
    """List stock by item and location, after a pair of the page before."""
    item, location = after or (None, None)
    wanted = None if items is None else list(items)
    return await database.fetch(LEVELS, shop, item, location, limit, location_id, wanted)


async def low(
    database: Reader,
    shop: ShopKey,
    threshold: int,
    after: tuple[int, int] | None,
    limit: int,
    *,
    drafts: bool = False,
) -> list[Row]:
    """List the variants of which no more than a threshold are left, the fewest first.

    What is known not to be tracked never runs out.
    """
    available, variant = after or (FEWEST, FEWEST)
    sql = LOW if await sums.knows_stock(database, shop) else LOW_OF_ROWS
    return await database.fetch(sql, shop, threshold, limit, available, variant, drafts)


async def ids_like(database: Reader, shop: ShopKey, typed: str, limit: int) -> list[str]:
    """List the ids of products whose id begins as typed, or whose title holds it."""
    begun = await numbers_like(
        database, "commerce_products", "product_id", shop=shop, typed=typed, limit=limit
    )
    if len(begun) >= limit or not typed:
        return [str(id) for id in begun]
    entitled = await database.fetch(ENTITLED, shop, MOST, limit, [typed])
    found = {*begun, *(row["product_id"] for row in entitled)}
    return [str(id) for id in sorted(found, reverse=True)[:limit]]
