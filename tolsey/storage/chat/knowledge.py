"""SQL for what the chat model is told of a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Database, Row
from tolsey.storage.records.commerce.shops import ShopKey

FACTS: Final = 60
PRODUCTS: Final = 20
VALUE_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKnowledge:
    """What a store's model may be told beside what it sold."""

    facts: Sequence[Row]
    shop: Row | None
    products: Sequence[Row]


async def knowledge(
    database: Database,
    organization_id: str,
    store_id: str,
    shop: ShopKey,
) -> StoreKnowledge:
    """Read what is known of a store, its shop and its organization."""
    return StoreKnowledge(
        facts=await database.fetch(FACTS_SQL, organization_id, store_id, FACTS, VALUE_CHARACTERS),
        shop=await database.fetchrow(SHOP_SQL, store_id),
        products=await database.fetch(PRODUCTS_SQL, shop, PRODUCTS, VALUE_CHARACTERS),
    )


FACTS_SQL: Final = """
SELECT name, left(value::text, $4) AS value FROM facts
WHERE organization_id = $1 AND (store_id = $2 OR store_id IS NULL) AND deleted_at IS NULL
ORDER BY store_id IS NULL, updated_at DESC, name LIMIT $3
"""

SHOP_SQL: Final = """
SELECT name, currency, country, timezone, plan_display_name FROM store_shops WHERE store_id = $1
"""

PRODUCTS_SQL: Final = """
SELECT left(title, $3) AS title, status, product_type, variant_count FROM commerce_products
WHERE store_id = $1 AND deleted_at IS NULL ORDER BY product_id DESC LIMIT $2
"""
