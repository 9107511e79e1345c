"""SQL for embeddings of what stores remember: made of facts and messages, and never older than these."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from tolsey.storage.chat.memory import FACT_WORDS, MESSAGE_WORDS
from tolsey.storage.database import Database, Row

REMEMBERED: Final = f"""
SELECT 'facts:store:' || store_id AS namespace, 'fact' AS kind, id, name, value #>> '{{}}' AS text,
    source, {FACT_WORDS} AS words
FROM facts WHERE store_id = $1 AND deleted_at IS NULL
UNION ALL
SELECT 'messages:' || store_id, 'message', id, NULL, text, source, {MESSAGE_WORDS}
FROM messages WHERE store_id = $1 AND deleted_at IS NULL
"""  # noqa: S608 - constants of this module
FRESH: Final = "v.model = $2 AND v.digest = md5(r.words)"
JOINED: Final = f"""
FROM ({REMEMBERED}) r LEFT JOIN vectors v ON v.namespace = r.namespace AND v.id = r.id AND {FRESH}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProgress:
    """How much of a store's memory has an embedding of a model, of how much."""

    embedded: int
    total: int

    @property
    def waiting(self) -> int:
        """How much has none yet."""
        return self.total - self.embedded


async def progress(database: Database, store_id: str, model: str) -> EmbeddingProgress:
    """Count what has an embedding of this model, made of what it says now."""
    row = await database.fetchrow(
        f"SELECT count(v.id) AS embedded, count(*) AS total {JOINED}",
        store_id,
        model,
    )
    return (
        EmbeddingProgress(embedded=row["embedded"], total=row["total"])
        if row
        else (EmbeddingProgress(embedded=0, total=0))
    )


async def unembedded(database: Database, store_id: str, model: str, limit: int) -> Sequence[Row]:
    """List what has no embedding of this model yet: `namespace`, `id` and `words`."""
    return await database.fetch(
        f"SELECT r.namespace, r.id, r.words {JOINED} WHERE v.id IS NULL ORDER BY r.namespace, r.id LIMIT $3",
        store_id,
        model,
        limit,
    )


async def keep(
    database: Database, rows: Sequence[Row], vectors: Sequence[Sequence[float]], model: str
) -> None:
    """Keep an embedding of each text; of one that was changed meanwhile it is stale, and made anew."""
    await database.execute(
        """
        INSERT INTO vectors (namespace, id, embedding, model, digest)
        SELECT namespace, id, embedding::vector, $5, md5(words)
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS t(namespace, id, embedding, words)
        ON CONFLICT (namespace, id) DO UPDATE
        SET embedding = excluded.embedding, model = excluded.model, digest = excluded.digest
        """,
        [row["namespace"] for row in rows],
        [row["id"] for row in rows],
        [orjson.dumps(list(one)).decode() for one in vectors],
        [row["words"] for row in rows],
        model,
    )


async def forget_left(database: Database, store_id: str) -> None:
    """Delete embeddings of what is no longer remembered."""
    await database.execute(
        f"""
        DELETE FROM vectors v WHERE v.namespace IN ('messages:' || $1, 'facts:store:' || $1)
            AND v.text IS NULL AND NOT EXISTS (
                SELECT FROM ({REMEMBERED}) r WHERE r.namespace = v.namespace AND r.id = v.id)
        """,  # noqa: S608 - constants of this module
        store_id,
    )


async def nearest(
    database: Database, store_id: str, model: str, vector: Sequence[float], limit: int
) -> Sequence[Row]:
    """Find what means most nearly the same: a store's few thousand rows are all compared."""
    return await database.fetch(
        f"""
        SELECT r.kind, r.id, r.name, r.text, r.source
        FROM ({REMEMBERED}) r JOIN vectors v ON v.namespace = r.namespace AND v.id = r.id AND {FRESH}
        WHERE vector_dims(v.embedding) = vector_dims($3::text::vector)
        ORDER BY v.embedding <=> $3::text::vector, r.kind, r.id LIMIT $4
        """,  # noqa: S608 - constants of this module
        store_id,
        model,
        orjson.dumps(list(vector)).decode(),
        limit,
    )
