"""SQL for what feeds the registry: which domains are due, which were heard of and are not in it yet."""

from datetime import datetime
from typing import Final, Literal

from tolsey.storage.database import Database

Moment = Literal["scanned_at", "snapshot_at"]
LEFT: Final = "(s.hold_until IS NULL OR s.hold_until <= $1)"
"""A site that asked for patience is left alone until then."""
WATCHED: Final = """s.domain IN (
    SELECT domain FROM competitors UNION ALL SELECT domain FROM calibrating_listings)"""
"""Somebody competes with it, or its seller lets it correct what is estimated of others."""


async def due(database: Database, at: datetime, limit: int) -> list[str]:
    """List domains whose scan is due: those that somebody competes with first, then the stale, then the new."""
    rows = await database.fetch(
        f"""
        SELECT domain FROM (
            {_first("s.next_scan_at", "s.next_scan_at <= $1", place=0, more=WATCHED)}
            UNION ALL {_first("s.discovered_at", "s.scanned_at IS NULL", place=1, more=WATCHED)}
            UNION ALL {_first("s.next_scan_at", "s.next_scan_at <= $1", place=2)}
            UNION ALL {_first("s.discovered_at", "s.scanned_at IS NULL", place=3)}) AS found
        GROUP BY domain ORDER BY min(place), min(due_at) LIMIT $2
        """,  # noqa: S608 - conditions of ours
        at,
        limit,
    )
    return [row["domain"] for row in rows]


def _first(moment: str, condition: str, *, place: int, more: str = "true") -> str:
    """Take the first of one sort from the index of its moment, not all of them to be sorted."""
    return f"""(SELECT s.domain, {place} AS place, {moment} AS due_at FROM storefronts s
        WHERE {condition} AND {more} AND {LEFT} ORDER BY {moment} LIMIT $2)"""  # noqa: S608 - as above


async def hot(database: Database, moment: Moment, before: datetime, limit: int) -> list[str]:
    """List domains that somebody competes with and that nobody looked at since a moment, longest ago first."""
    seen_at = f"coalesce(s.{moment}, '-infinity'::timestamptz)"
    rows = await database.fetch(
        f"""
        SELECT s.domain FROM storefronts s
        WHERE {seen_at} <= $1 AND s.state IN ('discovered', 'active') AND s.hold_until IS NULL
            AND {WATCHED}
            AND NOT EXISTS (
                SELECT FROM storefront_scans r WHERE r.domain = s.domain AND r.ended_at IS NULL)
        ORDER BY {seen_at}, s.domain LIMIT $2
        """,  # noqa: S608 - a column and conditions of ours
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
