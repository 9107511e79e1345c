"""SQL for what an organization's and a store's memory holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Database, Row
from tolsey.storage.records.memory import StoreFact, StoreMessage
from tolsey.storage.tables import table_of

FACTS: Final = table_of(StoreFact)
MESSAGES: Final = table_of(StoreMessage)
FACT_WORDS: Final = "name || ' ' || (value #>> '{}')"
MESSAGE_WORDS: Final = "left(text, 20000)"
"""What is looked through of each, as their indexes have it."""


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How much is remembered for an organization."""

    facts: int
    messages: int


def namespaces_of(store_id: str) -> tuple[str, str, str]:
    """Name the three vector namespaces of a store (rules/shops#memory)."""
    return store_id, messages_namespace(store_id), facts_namespace(store_id)


def messages_namespace(store_id: str) -> str:
    """Name where the vectors of a store's messages are."""
    return f"messages:{store_id}"


def facts_namespace(store_id: str) -> str:
    """Name where the vectors of a store's facts are."""
    return f"facts:store:{store_id}"


async def counts(database: Database, organization_id: str) -> MemoryCounts:
    """Count the facts and messages of an organization."""
    row = await database.fetchrow(
        """
        SELECT (SELECT count(*) FROM facts WHERE organization_id = $1 AND deleted_at IS NULL) AS facts,
               (SELECT count(*) FROM messages WHERE organization_id = $1 AND deleted_at IS NULL) AS messages
        """,
        organization_id,
    )
    return MemoryCounts(row["facts"], row["messages"]) if row else MemoryCounts(0, 0)


async def stores_of(database: Database, organization_id: str) -> list[str]:
    """List the ids of an organization's stores."""
    rows = await database.fetch(
        "SELECT id FROM stores WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY id",
        organization_id,
    )
    return [row["id"] for row in rows]


async def facts_by_key(database: Database, store_id: str) -> Mapping[str, StoreFact]:
    """Read all facts of a store, by their keys."""
    rows = await database.fetch(
        f"SELECT {FACTS.selected} FROM facts WHERE {OF_STORE}",  # noqa: S608 - constants of this module
        store_id,
    )
    return {row["name"]: FACTS.read(row) for row in rows}


async def facts_of(
    database: Database, store_id: str, before: str | None, limit: int
) -> Sequence[StoreFact]:
    """List a part of a store's facts, newest first; `before` is the id of the last one before."""
    rows = await database.fetch(
        f"SELECT {FACTS.selected} FROM facts WHERE {OF_STORE} {PAGE}",  # noqa: S608 - constants of this module
        store_id,
        before,
        limit,
    )
    return [FACTS.read(row) for row in rows]


async def fact(database: Database, store_id: str, id_or_key: str) -> StoreFact | None:
    """Read one fact of a store by its key, or by its id."""
    row = await database.fetchrow(
        f"SELECT {FACTS.selected} FROM facts WHERE {OF_STORE} AND (name = $2 OR id = $2) LIMIT 1",  # noqa: S608 - constants of this module
        store_id,
        id_or_key,
    )
    return None if row is None else FACTS.read(row)


async def messages_of(
    database: Database, store_id: str, before: str | None, limit: int
) -> Sequence[StoreMessage]:
    """List a part of a store's messages, newest first, as `facts_of` does."""
    rows = await database.fetch(
        f"SELECT {MESSAGES.selected} FROM messages WHERE {OF_STORE} {PAGE}",  # noqa: S608 - constants of this module
        store_id,
        before,
        limit,
    )
    return [MESSAGES.read(row) for row in rows]


async def message(database: Database, store_id: str, message_id: str) -> StoreMessage | None:
    """Read one message of a store."""
    row = await database.fetchrow(
        f"SELECT {MESSAGES.selected} FROM messages WHERE {OF_STORE} AND id = $2",  # noqa: S608 - constants of this module
        store_id,
        message_id,
    )
    return None if row is None else MESSAGES.read(row)


async def count_messages(database: Database, store_id: str) -> int:
    """Count the messages of a store."""
    row = await database.fetchrow(
        f"SELECT count(*) AS messages FROM messages WHERE {OF_STORE}",  # noqa: S608 - constants of this module
        store_id,
    )
    return int(row["messages"]) if row else 0


async def worded(
    database: Database, store_id: str, words: Sequence[str], limit: int
) -> Sequence[Row]:
    """Find what a store remembers by words, the best first: `kind`, `id`, `name`, `text`, `source`."""
    if not words:
        return []
    return await database.fetch(WORDED, store_id, " OR ".join(words), limit)


OF_STORE: Final = "store_id = $1 AND deleted_at IS NULL"
PAGE: Final = "AND ($2::text IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
WORDED: Final = f"""
SELECT kind, id, name, text, source FROM (
    SELECT 'fact' AS kind, id, name, value #>> '{{}}' AS text, source, updated_at,
        remembered_words({FACT_WORDS}) AS words
    FROM facts, websearch_to_tsquery('simple', $2) AS asked
    WHERE {OF_STORE} AND remembered_words({FACT_WORDS}) @@ asked
    UNION ALL
    SELECT 'message', id, NULL, text, source, updated_at, remembered_words({MESSAGE_WORDS})
    FROM messages, websearch_to_tsquery('simple', $2) AS asked
    WHERE {OF_STORE} AND remembered_words({MESSAGE_WORDS}) @@ asked
    UNION ALL
    SELECT 'passage', id, NULL, text, NULL, NULL, remembered_words(left(text, 20000))
    FROM vectors, websearch_to_tsquery('simple', $2) AS asked
    WHERE namespace = $1 AND text IS NOT NULL AND remembered_words(left(text, 20000)) @@ asked
) found, websearch_to_tsquery('simple', $2) AS asked
ORDER BY ts_rank(words, asked) DESC, updated_at DESC NULLS LAST, kind, id LIMIT $3
"""  # noqa: S608 - constants of this module
