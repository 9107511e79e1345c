"""SQL for what programs read of the registry: shops, what they sell, and what changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Row
from tolsey.storage.intelligence.registry import STOREFRONTS
from tolsey.storage.records.intelligence import StorefrontRow

LISTED: Final = (
    "p.product_id, p.title, p.handle, p.vendor, p.product_type, p.published_at, p.first_seen_at,"
    " p.changed_at"
)

EARLIER: Final = """
(c.at, c.variant_id, c.kind) < (
    {0}::timestamptz,
    CASE WHEN of.domain = {1}::text THEN {2}::bigint WHEN of.domain < {1} THEN 9223372036854775807 ELSE -1 END,
    CASE WHEN of.domain = {1} THEN {3}::text ELSE '' END)
"""
"""As one bound for each shop, so that its index begins there: all of a moment, of a shop that comes later, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorefrontFilter:
    """Which shops are wanted; what is None is not asked for."""

    platform: str | None = None
    category: str | None = None
    country: str | None = None
    min_velocity: Decimal | None = None


async def storefronts(
    database: Reader, limit: int, after: tuple[datetime, str] | None, wanted: StorefrontFilter
) -> list[StorefrontRow]:
    """List shops of the registry, those that were heard of last first."""
    said = Conditions(limit)
    said.add("(discovered_at, domain) < ({}, {})", *(after or (None,)))
    said.add("platform = {}", wanted.platform)
    said.add("category = {}", wanted.category)
    said.add("country = {}", wanted.country)
    said.add("velocity >= {}", wanted.min_velocity)
    rows = await database.fetch(
        f"""
        SELECT {STOREFRONTS.selected} FROM storefronts WHERE {said}
        ORDER BY discovered_at DESC, domain DESC LIMIT $1
        """,  # noqa: S608 - our columns, conditions of this function
        *said.args,
    )
    return [STOREFRONTS.read(row) for row in rows]


async def products(database: Reader, domain: str, limit: int, before: int | None) -> list[Row]:
    """List what a shop sells, its newest products first, with prices and stock over their variants."""
    said = Conditions(domain, limit)
    said.add("p.product_id < {}", before)
    return await database.fetch(
        f"""
        SELECT {LISTED}, v.lowest, v.highest, v.available, v.quantity
        FROM (SELECT * FROM storefront_products p WHERE p.domain = $1 AND p.gone_at IS NULL AND {said}
            ORDER BY p.product_id DESC LIMIT $2) p
        CROSS JOIN LATERAL (
            SELECT min(price) AS lowest, max(price) AS highest, bool_or(available) AS available,
                sum(quantity)::bigint AS quantity
            FROM storefront_variants
            WHERE domain = $1 AND product_id = p.product_id AND gone_at IS NULL) v
        ORDER BY p.product_id DESC
        """,  # noqa: S608 - our columns, conditions of this function
        *said.args,
    )


async def snapshots(
    database: Reader, domain: str, limit: int, before: datetime | None
) -> list[Row]:
    """List the snapshots of a shop, the latest first."""
    said = Conditions(domain, limit)
    said.add("taken_at < {}", before)
    return await database.fetch(
        f"""
        SELECT taken_at, product_count, variant_count, changed, median_price, units,
            velocity, velocity_low, velocity_high
        FROM storefront_snapshots
        WHERE domain = $1 AND {said} ORDER BY taken_at DESC LIMIT $2
        """,  # noqa: S608 - conditions of this function
        *said.args,
    )


async def changes(
    database: Reader,
    since: datetime,
    limit: int,
    *,
    domains: Sequence[str],
    before: tuple[datetime, str, int, str] | None,
) -> list[Row]:
    """List what changed at some shops since a moment, the latest first."""
    said = Conditions(list(domains), since, limit)
    said.add(EARLIER, *(before or (None,)))
    return await database.fetch(
        f"""
        SELECT c.*, p.title FROM (
            SELECT of.domain, one.* FROM unnest($1::text[]) AS of(domain) CROSS JOIN LATERAL (
                SELECT c.at, c.variant_id, c.product_id, c.kind, c.before, c.after
                FROM storefront_changes c WHERE c.domain = of.domain AND c.at >= $2 AND {said}
                ORDER BY c.at DESC, c.variant_id DESC, c.kind DESC LIMIT $3) AS one
            ORDER BY one.at DESC, of.domain DESC, one.variant_id DESC, one.kind DESC LIMIT $3
        ) c CROSS JOIN LATERAL (
            SELECT title FROM storefront_products
            WHERE domain = c.domain AND product_id = c.product_id OFFSET 0) p
        ORDER BY c.at DESC, c.domain DESC, c.variant_id DESC, c.kind DESC
        """,  # noqa: S608 - conditions of this function
        *said.args,
    )
