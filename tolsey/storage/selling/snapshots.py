"""SQL for the dated history of a listing's revenue."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.selling.revenue import RevenueSnapshot
from tolsey.storage.selling.listings import SNAPSHOT

NEAR: Final = timedelta(days=2)
"""How far from the wanted day a snapshot may lie and still stand for its window."""


async def earlier(
    database: Database,
    listing_id: str,
    shop_domain: str,
    definition: str,
    ends: Sequence[datetime],
) -> list[RevenueSnapshot]:
    """Read, for each moment, the last snapshot whose window ended by then, if it ended near it.

    One that another definition made is not compared with.
    """
    rows = await database.fetch(
        """
        SELECT r.* FROM unnest($3::timestamptz[]) AS wanted(at)
        JOIN LATERAL (
            SELECT * FROM revenue_snapshots
            WHERE listing_id = $1 AND shop_domain = $2 AND definition = $5
              AND window_end <= wanted.at AND window_end > wanted.at - $4::interval
            ORDER BY window_end DESC LIMIT 1
        ) r ON true
        """,
        listing_id,
        shop_domain,
        list(ends),
        NEAR,
        definition,
    )
    return [SNAPSHOT.read(row) for row in rows]


async def latest(database: Database, listing_id: str, shop_domain: str) -> RevenueSnapshot | None:
    """Read the last snapshot of a shop or an account, whatever made it."""
    row = await database.fetchrow(
        """
        SELECT * FROM revenue_snapshots WHERE listing_id = $1 AND shop_domain = $2
        ORDER BY window_end DESC LIMIT 1
        """,
        listing_id,
        shop_domain,
    )
    return SNAPSHOT.read(row) if row else None


async def history(
    database: Database, listing_id: str, shop_domain: str, since: datetime
) -> list[RevenueSnapshot]:
    """Read the last verified snapshot of each UTC day, oldest first."""
    rows = await database.fetch(
        """
        SELECT DISTINCT ON (date_trunc('day', window_end, 'UTC')) *
        FROM revenue_snapshots
        WHERE listing_id = $1 AND shop_domain = $2 AND window_end >= $3 AND verified
        ORDER BY date_trunc('day', window_end, 'UTC'), window_end DESC
        """,
        listing_id,
        shop_domain,
        since,
    )
    return [SNAPSHOT.read(row) for row in rows]
