"""SQL for what is on the market: found by words, ranges and orders; who watches it, and how often it was seen."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader
from tolsey.storage.selling.listings import VIEW, ListingView, read_view

WORD: Final = re.compile(r"\w+")
MOST_WORDS: Final = 8
ORDERS: Final = {
    "newest": ("listing_id", "DESC"),
    "price_asc": ("price", "ASC"),
    "price_desc": ("price", "DESC"),
    "revenue_asc": ("revenue_low", "ASC"),
    "revenue_desc": ("revenue_low", "DESC"),
}
"""What each order is by, and which way."""


WALKED: Final = 1000
"""So many entries are looked through in their order, before the index of words tells of the others."""
ENTRIES: Final = """
SELECT e.listing_id, {key} AS key FROM market_entries e WHERE {placed} AND {asked} ORDER BY {order} LIMIT $1
"""
ENTRIES_BY_WORDS: Final = f"""
WITH walked AS MATERIALIZED (
    SELECT e.*, {{plain}} AS key FROM market_entries e WHERE {{placed}} ORDER BY {{order}} LIMIT {WALKED}
),
last AS MATERIALIZED (
    SELECT e.key, e.listing_id FROM walked e ORDER BY e.key {{back}}, e.listing_id {{back}} LIMIT 1
)
SELECT listing_id, key FROM (
    SELECT e.listing_id, {{key}} AS key FROM walked e WHERE {{asked}}
    UNION ALL
    SELECT older.listing_id, older.key FROM (
        SELECT e.listing_id, {{key}} AS key FROM market_entries e, last
        WHERE {{asked}} AND ({{plain}}, e.listing_id || '') {{sign}} (last.key, last.listing_id)
        ORDER BY {{order}} OFFSET 0
    ) older
) every LIMIT $1
"""  # noqa: S608 - put together from constants
"""What many entries say is found among the first of them; what few say the index of words tells.

The planner takes the beginning of a word for common, and would walk through all entries for one that is not.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSearch:
    """What a buyer looks for; None stands for whatever there is. Amounts are of `currency`."""

    words: str | None = None
    status: str | None = None
    category: str | None = None
    business_model: str | None = None
    country: str | None = None
    currency: str | None = None
    least_price: int | None = None
    most_price: int | None = None
    least_revenue: int | None = None
    most_revenue: int | None = None
    verified: bool | None = None
    financing: bool | None = None
    order: str = "newest"


@dataclass(frozen=True, slots=True)
class MarketHit:
    """A listing that was found, with what its order is by: where the next page begins."""

    view: ListingView
    key: int | None


@dataclass(frozen=True, slots=True)
class Attention:
    """How many watch a listing, and how often it was seen."""

    watchers: int = 0
    views: int = 0


async def search(
    database: Reader,
    wanted: MarketSearch,
    *,
    after: tuple[int | None, str] | None,
    at: datetime,
    limit: int,
) -> list[MarketHit]:
    """Find listings on the market; `after` is the key and the id of the last one of the page before."""
    column, way = ORDERS[wanted.order]
    key, ids = (
        ("NULL::bigint", "") if column == "listing_id" else (f"e.{column}", f", e.listing_id {way}")
    )
    placed = _placed(wanted, column, way, after, limit)
    asked = _asked(wanted, at, placed.args)
    words = _query(wanted.words)
    asked.add("e.words @@ to_tsquery('simple', folded({}))", words)
    hits = (ENTRIES if words is None else ENTRIES_BY_WORDS).format(
        placed=placed,
        asked=asked,
        key=key,
        plain="0" if column == "listing_id" else f"e.{column} + 0",
        order=f"e.{column} {way}{ids}",
        sign="<" if way == "DESC" else ">",
        back="ASC" if way == "DESC" else "DESC",
    )
    rows = await database.fetch(
        f"""
        SELECT hit.key, found.* FROM (
            SELECT first.*, row_number() OVER () AS place FROM ({hits}) first
        ) hit CROSS JOIN LATERAL ({VIEW} AND l.id = hit.listing_id) found ORDER BY hit.place
        """,  # noqa: S608 - put together from constants
        *asked.args,
    )
    return [MarketHit(read_view(row), row["key"]) for row in rows]


def _placed(
    wanted: MarketSearch, column: str, way: str, after: tuple[int | None, str] | None, limit: int
) -> Conditions:
    """Say which part of an order's index is meant."""
    found = Conditions(limit)
    sign = "<" if way == "DESC" else ">"
    if column == "price":
        found.add("e.currency = {}", wanted.currency)
    if column == "revenue_low":
        found.add("e.revenue_low IS NOT NULL AND e.revenue_currency = {}", wanted.currency)
    if after is not None and column == "listing_id":
        found.add("e.listing_id < {}", after[1])
    elif after is not None:
        found.add(f"(e.{column}, e.listing_id) {sign} ({{}}::bigint, {{}}::text)", *after)
    return found


def _asked(wanted: MarketSearch, at: datetime, args: Sequence[Any]) -> Conditions:
    found = Conditions(*args)
    found.add("e.status = {}", wanted.status)
    found.add("e.category = folded({})", wanted.category)
    found.add("e.business_model = folded({})", wanted.business_model)
    found.add("e.country = {}", wanted.country)
    found.add("e.financing = {}", wanted.financing)
    of_revenue = (wanted.least_revenue, wanted.most_revenue)
    of_price = (wanted.least_price, wanted.most_price)
    by_revenue = ORDERS[wanted.order][0] == "revenue_low" or any(
        one is not None for one in of_revenue
    )
    if by_revenue:
        # What is not shown is not found by: a hidden revenue would be guessed (rules/revenue#what-is-shown).
        found.add("e.revenue_low IS NOT NULL AND e.revenue_until > {}", at)
        found.add("e.revenue_currency = {}", wanted.currency)
        found.add("e.revenue_low >= {}", wanted.least_revenue)
        found.add("e.revenue_high <= {}", wanted.most_revenue)
    by_price = wanted.order.startswith("price") or any(one is not None for one in of_price)
    if by_price or not by_revenue:
        found.add("e.currency = {}", wanted.currency)
    found.add("e.price >= {}", wanted.least_price)
    found.add("e.price <= {}", wanted.most_price)
    if wanted.verified is not None:
        # As one comparison, it is served by the index of those that have a badge.
        unverified = "NOT coalesce(e.verified_until > {}, false)"
        found.add("e.verified_until > {}" if wanted.verified else unverified, at)
    return found


def _query(words: str | None) -> str | None:
    """Write a query for texts that have all words, each whole or begun; None where there are none."""
    found = WORD.findall(words or "")[:MOST_WORDS]
    return " & ".join(f"{word}:*" for word in found) or None


async def attention_of(database: Reader, listing_ids: Sequence[str]) -> dict[str, Attention]:
    """Count who watches listings, and how often each was seen."""
    rows = await database.fetch(
        """
        SELECT wanted.id, coalesce(v.views, 0) AS views,
            (SELECT count(*) FROM listing_watchers w WHERE w.listing_id = wanted.id) AS watchers
        FROM unnest($1::text[]) AS wanted(id) LEFT JOIN listing_views v ON v.listing_id = wanted.id
        """,
        list(listing_ids),
    )
    return {row["id"]: Attention(row["watchers"], row["views"]) for row in rows}


async def note_view(database: Database, listing_id: str) -> None:
    """Count that a listing was seen."""
    await database.execute(
        """
        INSERT INTO listing_views AS kept (listing_id, views) VALUES ($1, 1)
        ON CONFLICT (listing_id) DO UPDATE SET views = kept.views + 1
        """,
        listing_id,
    )


async def watch(database: Database, listing_id: str, user_id: str, at: datetime) -> None:
    """Remember who watches a listing; to watch it twice is once."""
    await database.execute(
        "INSERT INTO listing_watchers (listing_id, user_id, since) VALUES ($1, $2, $3)"
        " ON CONFLICT DO NOTHING",
        listing_id,
        user_id,
        at,
    )


async def is_watched(database: Reader, listing_id: str, user_id: str) -> bool:
    """Tell whether somebody watches a listing."""
    row = await database.fetchrow(
        "SELECT EXISTS (SELECT FROM listing_watchers WHERE listing_id = $1 AND user_id = $2) AS watched",
        listing_id,
        user_id,
    )
    return bool(row and row["watched"])


async def unwatch(database: Database, listing_id: str, user_id: str) -> bool:
    """Forget that somebody watches a listing; False when they did not."""
    row = await database.fetchrow(
        "DELETE FROM listing_watchers WHERE listing_id = $1 AND user_id = $2 RETURNING listing_id",
        listing_id,
        user_id,
    )
    return row is not None


async def watched_by(
    database: Reader, user_id: str, after: str | None, limit: int
) -> list[ListingView]:
    """List the listings on the market that somebody watches, newest first."""
    wanted = Conditions(user_id, limit)
    wanted.add("w.listing_id < {}", after)
    rows = await database.fetch(
        f"""
        SELECT found.* FROM (
            SELECT w.listing_id FROM listing_watchers w JOIN market_entries e USING (listing_id)
            WHERE w.user_id = $1 AND {wanted} ORDER BY w.listing_id DESC LIMIT $2
        ) mine CROSS JOIN LATERAL ({VIEW} AND l.id = mine.listing_id) found
        ORDER BY (found.listing).id DESC
        """,  # noqa: S608 - put together from constants
        *wanted.args,
    )
    return [read_view(row) for row in rows]
