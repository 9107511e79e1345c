"""SQL for what the chat model is told of a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.chat.memory import namespaces_of
from tolsey.storage.database import Database, Row
from tolsey.storage.records.commerce.shops import ShopKey

FACTS: Final = 60
PRODUCTS: Final = 20
PASSAGES: Final = 8
VALUE_CHARACTERS: Final = 300
PASSAGE_CHARACTERS: Final = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKnowledge:
    """What a store's model may be told beside what it sold."""

    facts: Sequence[Row]
    shop: Row | None
    products: Sequence[Row]
    passages: Sequence[str]


async def knowledge(
    database: Database,
    organization_id: str,
    store_id: str,
    shop: ShopKey,
    words: Sequence[str],
) -> StoreKnowledge:
    """Read what is known of a store, its shop and its organization, and what it remembers about words."""
    return StoreKnowledge(
        facts=await database.fetch(FACTS_SQL, organization_id, store_id, FACTS, VALUE_CHARACTERS),
        shop=await database.fetchrow(SHOP_SQL, store_id),
        products=await database.fetch(PRODUCTS_SQL, shop, PRODUCTS, VALUE_CHARACTERS),
        passages=await _passages(database, store_id, words),
    )


FACTS_SQL: Final = """
SELECT name, left(value::text, $4) AS value FROM facts
WHERE organization_id = $1 AND (store_id = $2 OR store_id IS NULL)
ORDER BY store_id IS NULL, updated_at DESC, name LIMIT $3
"""

SHOP_SQL: Final = """
SELECT name, currency, country, timezone, plan_display_name FROM store_shops WHERE store_id = $1
"""

PRODUCTS_SQL: Final = """
SELECT left(title, $3) AS title, status, product_type, variant_count FROM commerce_products
WHERE store_id = $1 AND deleted_at IS NULL ORDER BY product_id DESC LIMIT $2
"""

PASSAGES_SQL: Final = """
SELECT left(text, $4) AS text FROM vectors, websearch_to_tsquery('simple', $2) AS asked
WHERE namespace = ANY($1::text[]) AND text IS NOT NULL
    AND to_tsvector('simple', left(text, 20000)) @@ asked
ORDER BY ts_rank(to_tsvector('simple', left(text, 20000)), asked) DESC, namespace, id LIMIT $3
"""


async def _passages(database: Database, store_id: str, words: Sequence[str]) -> list[str]:
    if not words:
        return []
    names, asked = list(namespaces_of(store_id)), " OR ".join(words)
    rows = await database.fetch(PASSAGES_SQL, names, asked, PASSAGES, PASSAGE_CHARACTERS)
    return [row["text"] for row in rows]
