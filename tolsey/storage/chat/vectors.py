"""Embeddings in the service's own database (pgvector)."""

from collections.abc import Sequence

from tolsey.storage.database import Database, patience


class DatabaseVectors:
    """The vector store when `VECTOR_URL` is unset; failures are StorageErrors."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def purge(self, namespaces: Sequence[str]) -> None:
        """Delete everything of these namespaces."""
        with patience(None):  # there may be many
            await self._database.execute(
                "DELETE FROM vectors WHERE namespace = ANY($1::text[])", list(namespaces)
            )

    async def count(self, namespaces: Sequence[str]) -> int:
        """Count the vectors of these namespaces."""
        row = await self._database.fetchrow(
            "SELECT count(*) AS vectors FROM vectors WHERE namespace = ANY($1::text[])",
            list(namespaces),
        )
        return int(row["vectors"]) if row else 0
