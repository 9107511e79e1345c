"""SQL for the registry of storefronts, their scans and tombstones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.intelligence import (
    IntelligenceSuppression,
    StorefrontRow,
    StorefrontScan,
)
from tolsey.storage.sealing.sealed import fingerprint
from tolsey.storage.tables import table_of

STOREFRONTS: Final = table_of(StorefrontRow)
SCANS: Final = table_of(StorefrontScan)
SUPPRESSIONS: Final = table_of(IntelligenceSuppression)
FORGOTTEN: Final = (
    "storefront_changes",
    "storefront_variants",
    "storefront_products",
    "storefront_snapshots",
    "storefront_scans",
    "storefronts",
)
"""Where rows of a domain are; its own row goes last."""


async def load(database: Database, domains: Sequence[str]) -> dict[str, StorefrontRow]:
    """Read the rows of domains that are in the registry."""
    rows = await database.fetch(
        f"SELECT {STOREFRONTS.selected} FROM storefronts WHERE domain = ANY($1)",  # noqa: S608 - our columns
        list(domains),
    )
    return {row["domain"]: STOREFRONTS.read(row) for row in rows}


async def open_scans(
    database: Database, domains: Sequence[str]
) -> Mapping[str, tuple[StorefrontScan, ...]]:
    """Read the scans of domains that have not ended, the oldest first."""
    rows = await database.fetch(
        f"""
        SELECT {SCANS.selected} FROM storefront_scans
        WHERE domain = ANY($1) AND ended_at IS NULL ORDER BY asked_at, id
        """,  # noqa: S608 - our columns
        list(domains),
    )
    found = defaultdict[str, tuple[StorefrontScan, ...]](tuple)
    for row in rows:
        found[row["domain"]] += (SCANS.read(row),)
    return found


async def suppressions(
    database: Database, domains: Sequence[str]
) -> dict[str, IntelligenceSuppression]:
    """Read the tombstones of domains, which only a hash of the name leads to."""
    by_hash = {fingerprint(domain): domain for domain in domains}
    rows = await database.fetch(
        f"""
        SELECT {SUPPRESSIONS.selected} FROM intelligence_suppressions
        WHERE domain_hash = ANY($1) AND lifted_at IS NULL
        """,  # noqa: S608 - our columns
        list(by_hash),
    )
    return {by_hash[row["domain_hash"]]: SUPPRESSIONS.read(row) for row in rows}


async def find(database: Database, domain: str) -> StorefrontRow | None:
    """Read a domain of the registry."""
    return (await load(database, [domain])).get(domain)


async def find_scan(database: Database, id: str) -> StorefrontScan | None:
    """Read a scan."""
    row = await database.fetchrow(
        f"SELECT {SCANS.selected} FROM storefront_scans WHERE id = $1",  # noqa: S608 - our columns
        id,
    )
    return SCANS.read(row) if row else None


async def forget(database: Database, domain: str) -> int:
    """Delete all that is kept of a domain, while its tombstone stands; answers how many rows it was."""
    deleted = 0
    async with database.transaction() as tx:
        stands = await tx.fetchval(
            """
            SELECT true FROM intelligence_suppressions
            WHERE domain_hash = $1 AND lifted_at IS NULL FOR SHARE
            """,
            fingerprint(domain),
        )
        if not stands:
            return 0
        for table in FORGOTTEN:
            status = await tx.execute(f"DELETE FROM {table} WHERE domain = $1", domain)  # noqa: S608 - our tables
            deleted += int(status.rsplit(" ", 1)[-1])
    return deleted
