"""SQL for what an organization's and a store's memory holds."""

from dataclasses import dataclass

from tolsey.storage.database import Database


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How much is remembered for an organization."""

    facts: int
    messages: int


def namespaces_of(store_id: str) -> tuple[str, str, str]:
    """Name the three vector namespaces of a store (rules/shops#memory)."""
    return store_id, f"messages:{store_id}", f"facts:store:{store_id}"


async def counts(database: Database, organization_id: str) -> MemoryCounts:
    """Count the facts and messages of an organization."""
    row = await database.fetchrow(
        """
        SELECT (SELECT count(*) FROM facts WHERE organization_id = $1) AS facts,
               (SELECT count(*) FROM messages WHERE organization_id = $1) AS messages
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
