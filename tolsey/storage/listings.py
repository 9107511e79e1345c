"""SQL for listings, their verification, and the history of their revenue."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from tolsey.storage.database import Database, Row
from tolsey.storage.records.listing import (
    PUBLIC_STATUSES,
    ListingRecord,
    ListingStatus,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.revenue import RevenueSnapshot
from tolsey.storage.sealed import Vault
from tolsey.storage.tables import replaced_whole, table

Kept = TypeVar("Kept")

JITTER_SECONDS: Final = 3000
SYNCED_STATES: Final = (
    *(VerificationState.PENDING, VerificationState.VERIFIED, VerificationState.VERIFIED_NEW),
    *(VerificationState.STALE, VerificationState.NEEDS_PERMISSION),
    VerificationState.TOKEN_UNAVAILABLE,
)
NEAR: Final = timedelta(days=2)
"""How far from the wanted day a snapshot may lie and still stand for its window."""

LISTING: Final = {
    "title": "text",
    "teaser": "text",
    "anonymous": "boolean",
    "category": "text",
    "business_model": "text",
    "founded_at": "date",
    "country": "text",
    "asking_price": "bigint",
    "currency": "text",
    "min_offer": "bigint",
    "reason_for_sale": "text",
    "included_assets": "jsonb",
    "excluded_assets": "jsonb",
    "domain": "text",
    "self_reported": "jsonb",
    "auto_approve_access": "boolean",
    "financing_offered": "boolean",
    "id": "text",
    "organization_id": "text",
    "store_id": "text",
    "slug": "text",
    "status": "text",
    "status_reason": "text",
    "created_by": "text",
    "created_at": "timestamptz",
    "seller_active_at": "timestamptz",
    "published_at": "timestamptz",
    "deleted_at": "timestamptz",
}
VERIFICATION: Final = {
    "listing_id": "text",
    "state": "text",
    "since": "timestamptz",
    "generation": "bigint",
    "shop_domain": "text",
    "accepted_at": "timestamptz",
    "last_ok_at": "timestamptz",
    "verified_at": "timestamptz",
    "keeps_badge": "boolean",
    "syncing_since": "timestamptz",
    "missing_permission": "text",
    "last_error": "text",
    "primary_domain": "text",
}
SOURCE: Final = {
    "listing_id": "text",
    "organization_id": "text",
    "provider": "text",
    "shop_domain": "text",
    "client_id": "text",
    "sealed_secret": "text",
    "connected_by": "text",
    "connected_at": "timestamptz",
    "revoked_at": "timestamptz",
}


table(ListingRecord, "listings", LISTING, conflict=replaced_whole(LISTING, "id"), key=("id",))
table(
    VerificationRecord,
    "listing_verifications",
    VERIFICATION,
    conflict=replaced_whole(VERIFICATION, "listing_id"),
    key=("listing_id",),
)
table(
    RevenueSource,
    "revenue_sources",
    SOURCE,
    conflict=replaced_whole(SOURCE, "listing_id"),
    key=("listing_id",),
)
table(
    RevenueSnapshot,
    "revenue_snapshots",
    {
        "listing_id": "text",
        "window_end": "timestamptz",
        "window_start": "timestamptz",
        "source": "text",
        "shop_domain": "text",
        "definition": "text",
        "shop_currency": "text",
        "verified": "boolean",
        "figures": "jsonb",
        "orders": "int",
        "skipped": "jsonb",
        "flags": "jsonb",
    },
    conflict="ON CONFLICT (listing_id, window_end) DO NOTHING",
)


@dataclass(frozen=True, slots=True)
class ListingRows:
    """All that is kept about one listing; its latest snapshot is of the shop it now stands on."""

    verification: VerificationRecord
    listing: ListingRecord | None = None
    source: RevenueSource | None = None


@dataclass(frozen=True, slots=True)
class ListingView:
    """A listing as it is read: the seller's words, the machine, and the latest good sync."""

    listing: ListingRecord
    verification: VerificationRecord
    snapshot: RevenueSnapshot | None


VIEW: Final = """
SELECT l AS listing, v AS verification, s.snapshot
FROM listings l
LEFT JOIN listing_verifications v ON v.listing_id = l.id
LEFT JOIN LATERAL (
    SELECT r AS snapshot FROM revenue_snapshots r
    WHERE r.listing_id = l.id AND r.shop_domain = v.shop_domain
    ORDER BY r.window_end DESC LIMIT 1
) s ON true
WHERE l.deleted_at IS NULL
"""

OF_USER: Final = f"""{VIEW}
  AND l.organization_id IN (SELECT m.organization_id FROM members m WHERE m.user_id = $1)
  AND ($2::text IS NULL OR l.organization_id = $2)
  AND ($3::text IS NULL OR l.id < $3)
ORDER BY l.id DESC LIMIT $4
"""  # noqa: S608 - put together from constants
IN_PUBLIC: Final = f"""{VIEW}
  AND l.status = ANY($1::text[]) AND ($2::text IS NULL OR l.id < $2)
ORDER BY l.id DESC LIMIT $3
"""


async def load(database: Database, listing_ids: Sequence[str]) -> dict[str, ListingRows]:
    """Read listings back; an unknown one has a blank machine and nothing else."""
    ids = list(listing_ids)
    listings = await database.fetch("SELECT * FROM listings WHERE id = ANY($1::text[])", ids)
    machines = await database.fetch(
        "SELECT * FROM listing_verifications WHERE listing_id = ANY($1::text[])", ids
    )
    sources = await database.fetch(
        "SELECT * FROM revenue_sources WHERE listing_id = ANY($1::text[])", ids
    )
    by_listing = {row["id"]: read_listing(row) for row in listings}
    by_machine = {row["listing_id"]: read_verification(row) for row in machines}
    by_source = {row["listing_id"]: kept(RevenueSource, row) for row in sources}
    return {
        id: ListingRows(
            by_machine.get(id, VerificationRecord(id)), by_listing.get(id), by_source.get(id)
        )
        for id in ids
    }


async def find(database: Database, listing_id: str) -> ListingView | None:
    """Read one listing, whatever its status; None when it is deleted or never was."""
    row = await database.fetchrow(VIEW + "AND l.id = $1", listing_id)
    return read_view(row) if row else None


async def find_public(database: Database, slug: str) -> ListingView | None:
    """Read one listing by its address if the public may see it."""
    row = await database.fetchrow(
        VIEW + "AND l.slug = $1 AND l.status = ANY($2::text[])", slug, list(PUBLIC_STATUSES)
    )
    return read_view(row) if row else None


async def page_of_user(
    database: Database, user_id: str, organization_id: str | None, after: str | None, limit: int
) -> list[ListingView]:
    """List the listings of a user's organizations, or of one of them, newest first."""
    rows = await database.fetch(OF_USER, user_id, organization_id, after, limit)
    return [read_view(row) for row in rows]


async def page_public(database: Database, after: str | None, limit: int) -> list[ListingView]:
    """List what the public may see, newest first."""
    rows = await database.fetch(IN_PUBLIC, list(PUBLIC_STATUSES), after, limit)
    return [read_view(row) for row in rows]


async def listing_using(database: Database, provider: str, shop_domain: str) -> str | None:
    """Name the listing that a shop backs now, if any."""
    row = await database.fetchrow(
        """
        SELECT listing_id FROM revenue_sources
        WHERE provider = $1 AND shop_domain = $2 AND revoked_at IS NULL
        """,
        provider,
        shop_domain,
    )
    return row["listing_id"] if row else None


async def source_of(database: Database, listing_id: str) -> RevenueSource | None:
    """Read where a listing's revenue is read, with its sealed secret.

    None from the moment the shop removed the app of a store of the seller's: the listing hears of
    that a little later, and no credential may be used meanwhile.
    """
    row = await database.fetchrow(
        """
        SELECT * FROM revenue_sources r WHERE listing_id = $1 AND revoked_at IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM integration_connections c JOIN stores s ON s.id = c.store_id
            WHERE c.shop_domain = r.shop_domain AND s.organization_id = r.organization_id
              AND c.status = 'revoked'
              AND (c.metadata->>'uninstalledAt')::timestamptz >= r.connected_at
          )
        """,
        listing_id,
    )
    return kept(RevenueSource, row) if row else None


async def listings_of_shop(database: Database, organization_id: str, shop_domain: str) -> list[str]:
    """Name the listings of an organization that a shop backs now."""
    rows = await database.fetch(
        """
        SELECT listing_id FROM revenue_sources
        WHERE organization_id = $1 AND shop_domain = $2 AND revoked_at IS NULL
        ORDER BY listing_id
        """,
        organization_id,
        shop_domain,
    )
    return [row["listing_id"] for row in rows]


async def due_for_sync(database: Database) -> list[str]:
    """Name the listings whose shop is to be read each hour, and whose clock may have run out."""
    rows = await database.fetch(
        """
        SELECT listing_id FROM listing_verifications
        WHERE state = ANY($1::text[]) ORDER BY listing_id
        """,
        list(SYNCED_STATES),
    )
    return [row["listing_id"] for row in rows]


async def left_alone(database: Database, before: datetime) -> list[str]:
    """Name the active listings whose seller did nothing since a moment; a `ClockTick` ends them."""
    rows = await database.fetch(
        """
        SELECT id FROM listings
        WHERE deleted_at IS NULL AND status = 'ACTIVE' AND seller_active_at <= $1 ORDER BY id
        """,
        before,
    )
    return [row["id"] for row in rows]


def jitter(listing_id: str) -> timedelta:
    """Say how long after the hour a listing's sync comes: always the same 0 to 2999 seconds."""
    return timedelta(seconds=zlib.crc32(listing_id.encode()) % JITTER_SECONDS)


async def earlier_snapshots(
    database: Database, listing_id: str, shop_domain: str, ends: Sequence[datetime]
) -> list[RevenueSnapshot]:
    """Read, for each moment, the last snapshot whose window ended by then, if it ended near it."""
    rows = await database.fetch(
        """
        SELECT r.* FROM unnest($3::timestamptz[]) AS wanted(at)
        JOIN LATERAL (
            SELECT * FROM revenue_snapshots
            WHERE listing_id = $1 AND shop_domain = $2
              AND window_end <= wanted.at AND window_end > wanted.at - $4::interval
            ORDER BY window_end DESC LIMIT 1
        ) r ON true
        """,
        listing_id,
        shop_domain,
        list(ends),
        NEAR,
    )
    return [kept(RevenueSnapshot, row) for row in rows]


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
    return [kept(RevenueSnapshot, row) for row in rows]


def seal_secret(vault: Vault, listing_id: str, secret: str) -> str:
    """Seal a client secret for the row of one listing."""
    return vault.seal(
        secret, table="revenue_sources", column="sealed_secret", row=listing_id, tenant=listing_id
    )


def open_secret(vault: Vault, listing_id: str, sealed: str) -> str:
    """Open the client secret of one listing; SealBroken when it cannot be."""
    return vault.open(
        sealed, table="revenue_sources", column="sealed_secret", row=listing_id, tenant=listing_id
    )


def kept(record: type[Kept], row: Row) -> Kept:
    """Read a row into its record."""
    names = [field.name for field in fields(record)]  # type: ignore[arg-type]  # every record is a dataclass
    return record(**{name: row[name] for name in names})


def read_listing(row: Row) -> ListingRecord:
    """Read a listing."""
    values: dict[str, Any] = dict(row.items())
    return ListingRecord(**{**values, "status": ListingStatus(values["status"])})


def read_verification(row: Row) -> VerificationRecord:
    """Read the machine of a listing."""
    values: dict[str, Any] = dict(row.items())
    return VerificationRecord(**{**values, "state": VerificationState(values["state"])})


def read_view(row: Row) -> ListingView:
    """Read a joined row."""
    listing = read_listing(row["listing"])
    machine = row["verification"]
    snapshot = row["snapshot"]
    return ListingView(
        listing,
        read_verification(machine) if machine else VerificationRecord(listing.id),
        kept(RevenueSnapshot, snapshot) if snapshot else None,
    )
