"""SQL for the storefronts that stores compete with."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Transaction
from tolsey.storage.records.intelligence import Competitor
from tolsey.storage.tables import table_of

COMPETITORS: Final = table_of(Competitor)


async def page(
    database: Reader, store_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[Competitor]:
    """List the competitors of a store, those named last first."""
    said = Conditions(store_id, limit)
    said.add("(added_at, domain) < ({}, {})", *(after or (None,)))
    rows = await database.fetch(
        f"""
        SELECT {COMPETITORS.selected} FROM competitors WHERE store_id = $1 AND {said}
        ORDER BY added_at DESC, domain DESC LIMIT $2
        """,  # noqa: S608 - our columns, conditions of this function
        *said.args,
    )
    return [COMPETITORS.read(row) for row in rows]


async def load(database: Reader, store_id: str, domains: Sequence[str]) -> list[Competitor]:
    """Read those of some domains that a store competes with."""
    rows = await database.fetch(
        f"SELECT {COMPETITORS.selected} FROM competitors WHERE store_id = $1 AND domain = ANY($2)",  # noqa: S608 - our columns
        store_id,
        list(domains),
    )
    return [COMPETITORS.read(row) for row in rows]


async def add(tx: Transaction, competitor: Competitor, most: int | None) -> bool | None:
    """Name a competitor of a store; False when it was one already, None when there are as many as may be."""
    # The store's row holds back whoever names another meanwhile.
    await tx.execute("SELECT FROM stores WHERE id = $1 FOR UPDATE", competitor.store_id)
    if await tx.fetchval(
        "SELECT true FROM competitors WHERE store_id = $1 AND domain = $2",
        competitor.store_id,
        competitor.domain,
    ):
        return False
    count = await tx.fetchval(
        "SELECT count(*) FROM competitors WHERE store_id = $1", competitor.store_id
    )
    if most is not None and count >= most:
        return None
    await tx.execute(COMPETITORS.insert, *COMPETITORS.values_of(competitor))
    return True


async def remove(tx: Transaction, store_id: str, domain: str) -> bool:
    """Name a domain a competitor no more; False when it was none."""
    status = await tx.execute(
        "DELETE FROM competitors WHERE store_id = $1 AND domain = $2", store_id, domain
    )
    return bool(status == "DELETE 1")


async def of_organization(database: Reader, organization_id: str) -> list[str]:
    """List the domains that the stores of an organization compete with."""
    rows = await database.fetch(
        """
        SELECT DISTINCT c.domain FROM competitors c JOIN stores s ON s.id = c.store_id
        WHERE s.organization_id = $1 AND s.deleted_at IS NULL
        """,
        organization_id,
    )
    return [row["domain"] for row in rows]
