"""SQL for chat: answers of the model, and what the model is told of a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database, Row
from tolsey.storage.memory import namespaces_of
from tolsey.storage.records.chat import Abandoned, Ending, Generation

SETTLING: Final = timedelta(minutes=1)
"""A live answer writes its end down this soon after its hold has ended."""
ABANDONED_AT_ONCE: Final = 200
FACTS: Final = 60
PRODUCTS: Final = 20
CUSTOMERS: Final = 5
PASSAGES: Final = 8
VALUE_CHARACTERS: Final = 300
PASSAGE_CHARACTERS: Final = 800
RECENT: Final = timedelta(days=30)


def hold_id(generation_id: str) -> str:
    """Name the hold of an answer (product page "Credits and chat", 6.2)."""
    return f"chat:{generation_id}"


async def begin(database: Database, generation: Generation) -> bool:
    """Write down that an answer is made; False when one was, for the same claim."""
    return bool(
        await database.execute(
            """
            INSERT INTO chat_generations
                (id, organization_id, store_id, user_id, claim, model, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (claim) DO NOTHING
            """,
            generation.id,
            generation.organization_id,
            generation.store_id,
            generation.user_id,
            generation.claim,
            generation.model,
            generation.created_at,
        )
    )


async def forget(database: Database, generation_id: str) -> None:
    """Take back that an answer is made: it was refused, and cost nothing."""
    await database.execute(
        "DELETE FROM chat_generations WHERE id = $1 AND ended_at IS NULL", generation_id
    )


async def end(database: Database, generation_id: str, ending: Ending, at: datetime) -> bool:
    """Write down how an answer ended; False when that was done before."""
    return bool(
        await database.execute(
            """
            UPDATE chat_generations SET ended_at = $2, outcome = $3, input_tokens = $4,
                output_tokens = $5, estimated = $6, cost = $7, charged = $8
            WHERE id = $1 AND ended_at IS NULL
            """,
            generation_id,
            at,
            ending.outcome,
            ending.input_tokens,
            ending.output_tokens,
            ending.estimated,
            ending.cost,
            ending.charged,
        )
    )


async def abandoned(database: Database, at: datetime) -> list[Abandoned]:
    """List answers whose hold has ended, or whose lease has: their process is no more."""
    rows = await database.fetch(
        """
        SELECT g.id, g.organization_id, coalesce(h.used, 0) AS used,
            coalesce(h.amount, 0) AS covered, h.id IS NULL OR h.closed_at IS NOT NULL AS closed
        FROM chat_generations g LEFT JOIN credit_holds h
            ON h.organization_id = g.organization_id AND h.id = 'chat:' || g.id
        WHERE g.ended_at IS NULL AND CASE
            WHEN h.id IS NULL THEN g.created_at <= $2
            WHEN h.closed_at IS NULL THEN h.lease_until <= $1
            ELSE h.closed_at <= $2 END
        ORDER BY g.created_at LIMIT $3
        """,
        at,
        at - SETTLING,
        ABANDONED_AT_ONCE,
    )
    return [Abandoned(**row) for row in rows]


async def hold_of(database: Database, one: Abandoned) -> Abandoned:
    """Read again what became of an answer's hold."""
    row = await database.fetchrow(
        """
        SELECT used, amount, closed_at IS NOT NULL AS closed FROM credit_holds
        WHERE organization_id = $1 AND id = $2
        """,
        one.organization_id,
        hold_id(one.id),
    )
    if row is None:
        return one
    return Abandoned(one.id, one.organization_id, row["used"], row["amount"], row["closed"])


@dataclass(frozen=True, slots=True)
class StoreKnowledge:
    """What a store's model may be told; customers only as pseudonyms."""

    facts: Sequence[Row]
    shop: Row | None
    products: Sequence[Row]
    sales: Sequence[Row]
    customers: Sequence[Row]
    passages: Sequence[str]


async def knowledge(
    database: Database, organization_id: str, store_id: str, words: Sequence[str], at: datetime
) -> StoreKnowledge:
    """Read what is known of a store and its organization, and what it remembers about words."""
    since = at - RECENT
    return StoreKnowledge(
        facts=await database.fetch(FACTS_SQL, organization_id, store_id, FACTS, VALUE_CHARACTERS),
        shop=await database.fetchrow(SHOP_SQL, store_id),
        products=await database.fetch(PRODUCTS_SQL, store_id, PRODUCTS, VALUE_CHARACTERS),
        sales=await database.fetch(SALES_SQL, store_id, since),
        customers=await database.fetch(CUSTOMERS_SQL, store_id, since, CUSTOMERS),
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
WHERE store_id = $1 AND deleted_at IS NULL ORDER BY updated_at DESC, product_id LIMIT $2
"""

SALES_SQL: Final = """
SELECT currency, count(*) AS orders, sum(current_total_minor) AS total_minor FROM commerce_orders
WHERE store_id = $1 AND processed_at >= $2 AND deleted_at IS NULL AND cancelled_at IS NULL
    AND NOT test AND currency IS NOT NULL
GROUP BY currency ORDER BY orders DESC, currency LIMIT 10
"""

CUSTOMERS_SQL: Final = """
SELECT customer_hash AS pseudonym, count(*) AS orders FROM commerce_orders
WHERE store_id = $1 AND processed_at >= $2 AND deleted_at IS NULL AND cancelled_at IS NULL
    AND NOT test AND customer_hash LIKE 's1:%'
GROUP BY customer_hash ORDER BY orders DESC, customer_hash LIMIT $3
"""
"""Older rows hold a digest that is the same in every store: that is no pseudonym of this one."""

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
