"""SQL for what feeds the registry: which domains are due, which were heard of and are not in it yet."""

from datetime import datetime
from typing import Final, Literal

from tolsey.storage.database import Database

Moment = Literal["scanned_at", "snapshot_at"]
LEFT: Final = "(s.hold_until IS NULL OR s.hold_until <= $1)"
"""A site that asked for patience is left alone until then."""


async def due(database: Database, at: datetime, limit: int) -> list[str]:
    """List domains whose scan is due: those that somebody competes with first, then the stale, then the new."""
    rows = await database.fetch(
        f"""
        SELECT s.domain FROM storefronts s
        WHERE (s.scanned_at IS NULL OR s.next_scan_at <= $1) AND {LEFT}
        ORDER BY EXISTS (SELECT FROM competitors c WHERE c.domain = s.domain) DESC,
            s.scanned_at IS NULL, s.next_scan_at, s.discovered_at
        LIMIT $2
        """,  # noqa: S608 - a condition of ours
        at,
        limit,
    )
    return [row["domain"] for row in rows]


async def hot(database: Database, moment: Moment, before: datetime, limit: int) -> list[str]:
    """List domains that somebody competes with and that nobody looked at since a moment, longest ago first."""
    rows = await database.fetch(
        f"""
        SELECT s.domain FROM storefronts s
        WHERE (s.{moment} IS NULL OR s.{moment} <= $1)
            AND s.state IN ('discovered', 'active') AND s.hold_until IS NULL
            AND EXISTS (SELECT FROM competitors c WHERE c.domain = s.domain)
            AND NOT EXISTS (
                SELECT FROM storefront_scans r WHERE r.domain = s.domain AND r.ended_at IS NULL)
        ORDER BY s.{moment} NULLS FIRST, s.domain LIMIT $2
        """,  # noqa: S608 - a column of ours
        before,
        limit,
    )
    return [row["domain"] for row in rows]


async def count(database: Database, most: int) -> int:
    """Count the domains of the registry, no further than to a bound."""
    rows = await database.fetch(
        "SELECT count(*) AS n FROM (SELECT FROM storefronts LIMIT $1) s", most
    )
    return int(rows[0]["n"])


async def unheard(database: Database, limit: int) -> list[str]:
    """List domains that somebody competes with, or where shops of the registry led, that are not in it."""
    rows = await database.fetch(
        """
        SELECT h.domain FROM (
            SELECT domain FROM competitors
            UNION SELECT canonical FROM storefronts WHERE canonical IS NOT NULL) h
        WHERE NOT EXISTS (SELECT FROM storefronts s WHERE s.domain = h.domain)
        ORDER BY h.domain LIMIT $1
        """,
        limit,
    )
    return [row["domain"] for row in rows]
