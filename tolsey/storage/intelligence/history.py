"""SQL for what became of a storefront's stock and prices over time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tolsey.storage.database import Reader, Row

LONGEST_DAYS: Final = 60
"""How far back sales are told from."""
MOST_CHANGES: Final = 200_000


async def snapshot_times(database: Reader, domain: str, since: datetime) -> list[datetime]:
    """Tell when snapshots of a domain were taken, the oldest first."""
    rows = await database.fetch(
        "SELECT taken_at FROM storefront_snapshots WHERE domain = $1 AND taken_at >= $2 ORDER BY taken_at",
        domain,
        since,
    )
    return [row["taken_at"] for row in rows]


async def stock_changes(
    database: Reader,
    domain: str,
    since: datetime,
    products: Sequence[int] | None = None,
    *,
    most: int = MOST_CHANGES,
) -> list[Row]:
    """Tell how the stock of a domain's products changed: by variant and moment, in their order, no more than `most`.

    `before` and `after` are numbers where the shop shows its stock, else whether it could be bought.
    """
    return await database.fetch(
        """
        SELECT product_id, at, kind, before, after FROM storefront_changes
        WHERE domain = $1 AND at >= $2 AND kind IN ('quantity', 'available')
            AND ($3::bigint[] IS NULL OR product_id = ANY($3))
        ORDER BY product_id, at LIMIT $4
        """,
        domain,
        since,
        products,
        most,
    )


async def stocked(
    database: Reader, domain: str, products: Sequence[int] | None = None
) -> list[Row]:
    """List products with whether they show their stock, since when they are known, and what they cost."""
    return await database.fetch(
        """
        SELECT p.product_id, p.title, p.first_seen_at, bool_or(v.quantity IS NOT NULL) AS shows_stock,
            min(v.price) AS price
        FROM storefront_products p
        JOIN storefront_variants v ON v.domain = p.domain AND v.product_id = p.product_id AND v.gone_at IS NULL
        WHERE p.domain = $1 AND p.gone_at IS NULL AND ($2::bigint[] IS NULL OR p.product_id = ANY($2))
        GROUP BY p.product_id, p.title, p.first_seen_at
        """,
        domain,
        products,
    )
