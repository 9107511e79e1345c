"""SQL for the catalogues of storefronts: what a snapshot changed is written, and nothing else.

A snapshot is written in bulk beside the actor that asked for it, in one transaction that holds the row of
its scan: one that was called off meanwhile, or is written already, writes nothing (rules/intelligence#snapshots).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final, Protocol

from tolsey.storage.database import Database, Transaction

PRODUCT_COLUMNS: Final = {
    "product_id": ("bigint", attrgetter("id")),
    "title": ("text", attrgetter("title")),
    "handle": ("text", attrgetter("handle")),
    "vendor": ("text", attrgetter("vendor")),
    "product_type": ("text", attrgetter("product_type")),
    "published_at": ("timestamptz", attrgetter("published_at")),
}
VARIANT_COLUMNS: Final = {
    "variant_id": ("bigint", attrgetter("id")),
    "title": ("text", attrgetter("title")),
    "sku": ("text", attrgetter("sku")),
    "price": ("numeric", attrgetter("price")),
    "compare_at_price": ("numeric", attrgetter("compare_at_price")),
    "available": ("boolean", attrgetter("available")),
    "quantity": ("bigint", attrgetter("quantity")),
}
COMPARED: Final = ("title", "sku", "price", "compare_at_price", "available", "quantity")
NOTED: Final = ("price", "compare_at_price", "available", "quantity")
"""Of what change a row is written that is kept: the rest only takes the place of what stood there."""


class SeenProduct(Protocol):
    """A product as it was seen: with `variants`, and the fields that the columns are read from."""

    @property
    def id(self) -> int:
        """Its number at the shop."""

    @property
    def variants(self) -> Sequence[Any]:
        """What of it can be bought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was seen of a domain's catalogue; `products` is None when the shop said that nothing changed."""

    domain: str
    scan_id: str
    taken_at: datetime
    products: Sequence[SeenProduct] | None
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a snapshot came to: rows that were written, and what the catalogue holds now."""

    products: int
    variants: int
    changed: int
    is_repeat: bool = False


async def keep(database: Database, snapshot: Snapshot) -> Written | None:
    """Write what changed since the last snapshot; None when the scan was called off."""
    async with database.transaction() as tx:
        state = await tx.fetchval(
            "SELECT state FROM storefront_scans WHERE id = $1 FOR UPDATE", snapshot.scan_id
        )
        if state != "running":
            return None
        if await tx.fetchval(
            "SELECT true FROM storefront_snapshots WHERE scan_id = $1", snapshot.scan_id
        ):
            return Written(products=0, variants=0, changed=0, is_repeat=True)
        changed = 0
        if snapshot.products is not None:
            is_first = not await tx.fetchval(
                "SELECT true FROM storefront_products WHERE domain = $1 LIMIT 1", snapshot.domain
            )
            changed = await _keep_products(tx, snapshot)
            changed += await _keep_variants(tx, snapshot, is_first=is_first)
        return await _counted(tx, snapshot, changed)


async def _counted(tx: Transaction, snapshot: Snapshot, changed: int) -> Written:
    """Count what the catalogue holds, and note the snapshot where all of it was seen."""
    row = await tx.fetchrow(
        """
        SELECT (SELECT count(*) FROM storefront_products WHERE domain = $1 AND gone_at IS NULL) AS products,
            count(*) AS variants, sum(quantity)::bigint AS units,
            percentile_disc(0.5) WITHIN GROUP (ORDER BY price) AS median_price
        FROM storefront_variants WHERE domain = $1 AND gone_at IS NULL
        """,
        snapshot.domain,
    )
    assert row is not None  # noqa: S101 - it has no condition
    if snapshot.is_whole or snapshot.products is None:
        await tx.execute(
            """
            INSERT INTO storefront_snapshots (domain, taken_at, scan_id, product_count, variant_count, changed,
                median_price, units)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """,
            snapshot.domain,
            snapshot.taken_at,
            snapshot.scan_id,
            row["products"],
            row["variants"],
            changed,
            row["median_price"],
            row["units"],
        )
    return Written(products=row["products"], variants=row["variants"], changed=changed)


async def note_velocity(
    database: Database,
    domain: str,
    taken_at: datetime,
    *,
    value: Decimal | None,
    low: Decimal | None,
    high: Decimal | None,
) -> None:
    """Note with a snapshot how fast the best seller was told to sell then."""
    await database.execute(
        """
        UPDATE storefront_snapshots SET velocity = $3, velocity_low = $4, velocity_high = $5
        WHERE domain = $1 AND taken_at = $2
        """,
        domain,
        taken_at,
        value,
        low,
        high,
    )


async def _keep_products(tx: Transaction, snapshot: Snapshot) -> int:
    assert snapshot.products is not None  # noqa: S101 - asked by whoever calls
    names = list(PRODUCT_COLUMNS)
    others = names[1:]
    status = await tx.execute(
        f"""
        WITH seen AS (SELECT * FROM unnest({_parameters(PRODUCT_COLUMNS, first=3)}) AS t({", ".join(names)}))
        INSERT INTO storefront_products AS kept (domain, {", ".join(names)}, first_seen_at, changed_at)
        SELECT $1, {", ".join(f"seen.{one}" for one in names)}, $2, $2
        FROM seen LEFT JOIN storefront_products was ON was.domain = $1 AND was.product_id = seen.product_id
        WHERE was.product_id IS NULL OR was.gone_at IS NOT NULL
            OR ({", ".join(f"was.{one}" for one in others)})
               IS DISTINCT FROM ({", ".join(f"seen.{one}" for one in others)})
        ON CONFLICT (domain, product_id) DO UPDATE
        SET {", ".join(f"{one} = excluded.{one}" for one in others)}, changed_at = $2, gone_at = NULL
        """,  # noqa: S608 - our own columns
        snapshot.domain,
        snapshot.taken_at,
        *_arguments(PRODUCT_COLUMNS, snapshot.products),
    )
    changed = _count(status)
    if snapshot.is_whole:
        status = await tx.execute(
            """
            UPDATE storefront_products SET gone_at = $2, changed_at = $2
            WHERE domain = $1 AND gone_at IS NULL AND NOT product_id = ANY($3::bigint[])
            """,
            snapshot.domain,
            snapshot.taken_at,
            [one.id for one in snapshot.products],
        )
        changed += _count(status)
    return changed


async def _keep_variants(tx: Transaction, snapshot: Snapshot, *, is_first: bool) -> int:
    assert snapshot.products is not None  # noqa: S101 - asked by whoever calls
    seen = {one.id: (product.id, one) for product in snapshot.products for one in product.variants}
    names = list(VARIANT_COLUMNS)
    noted = " UNION ALL ".join(
        f"SELECT variant_id, product_id, '{one}', was_{one}::text, {one}::text FROM differing"  # noqa: S608 - our own columns
        f" WHERE NOT is_new AND was_{one} IS DISTINCT FROM {one}"
        for one in NOTED
    )
    changed = await tx.fetchval(
        f"""
        WITH seen AS (
            SELECT * FROM unnest($4::bigint[], {_parameters(VARIANT_COLUMNS, first=5)})
                AS t(product_id, {", ".join(names)})
        ), differing AS (
            SELECT seen.*, was.variant_id IS NULL OR was.gone_at IS NOT NULL AS is_new,
                {", ".join(f"was.{one} AS was_{one}" for one in NOTED)}
            FROM seen LEFT JOIN storefront_variants was
                ON was.domain = $1 AND was.variant_id = seen.variant_id
            WHERE was.variant_id IS NULL OR was.gone_at IS NOT NULL
                OR (was.product_id, {", ".join(f"was.{one}" for one in COMPARED)})
                   IS DISTINCT FROM (seen.product_id, {", ".join(f"seen.{one}" for one in COMPARED)})
        ), written AS (
            INSERT INTO storefront_variants (domain, product_id, {", ".join(names)}, changed_at)
            SELECT $1, product_id, {", ".join(names)}, $2 FROM differing
            ON CONFLICT (domain, variant_id) DO UPDATE
            SET product_id = excluded.product_id, {", ".join(f"{one} = excluded.{one}" for one in COMPARED)},
                changed_at = $2, gone_at = NULL
        ), noted AS (
            INSERT INTO storefront_changes (domain, at, variant_id, product_id, kind, before, after)
            SELECT $1, $2, * FROM ({noted} UNION ALL
                SELECT variant_id, product_id, 'new', NULL, price::text FROM differing
                WHERE is_new AND NOT $3) AS found
        )
        SELECT count(*) FROM differing
        """,  # noqa: S608 - our own columns
        snapshot.domain,
        snapshot.taken_at,
        is_first,
        [product_id for product_id, _ in seen.values()],
        *_arguments(VARIANT_COLUMNS, [one for _, one in seen.values()]),
    )
    return int(changed) + (await _note_gone(tx, snapshot, list(seen)) if snapshot.is_whole else 0)


async def _note_gone(tx: Transaction, snapshot: Snapshot, seen: Sequence[int]) -> int:
    status = await tx.execute(
        """
        WITH gone AS (
            UPDATE storefront_variants SET gone_at = $2, changed_at = $2
            WHERE domain = $1 AND gone_at IS NULL AND NOT variant_id = ANY($3::bigint[])
            RETURNING variant_id, product_id, price
        )
        INSERT INTO storefront_changes (domain, at, variant_id, product_id, kind, before)
        SELECT $1, $2, variant_id, product_id, 'gone', price::text FROM gone
        """,
        snapshot.domain,
        snapshot.taken_at,
        seen,
    )
    return _count(status)


def _parameters(columns: dict[str, Any], *, first: int) -> str:
    return ", ".join(
        f"${number}::{kind}[]" for number, (kind, _) in enumerate(columns.values(), first)
    )


def _arguments(columns: dict[str, Any], seen: Sequence[Any]) -> list[list[Any]]:
    return [[read(one) for one in seen] for _, read in columns.values()]


def _count(status: str) -> int:
    return int(status.rsplit(" ", 1)[-1])
