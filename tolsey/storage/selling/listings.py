"""SQL for listings, their verification, and the history of their revenue."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PROVIDERS,
    PUBLIC_STATUSES,
    ListingDetails,
    ListingRecord,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.selling.revenue import DEFINITION, RevenueSnapshot
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

JITTER_SECONDS: Final = 3000
MOST_OF_STORE: Final = 20
"""A store is sold once; drafts and former listings are beside it."""
SYNCED_STATES: Final = (
    VerificationState.PENDING,
    VerificationState.VERIFIED,
    VerificationState.VERIFIED_NEW,
    VerificationState.STALE,
    VerificationState.NEEDS_PERMISSION,
    VerificationState.TOKEN_UNAVAILABLE,
    VerificationState.SUSPENDED,
)

LISTING: Final = table_of(ListingRecord)
DETAILS: Final = table_of(ListingDetails)
VERIFICATION: Final = table_of(VerificationRecord)
SOURCE: Final = table_of(RevenueSource)
SNAPSHOT: Final = table_of(RevenueSnapshot)


@dataclass(frozen=True, slots=True)
class ListingRows:
    """All that is kept about one listing, its machines and sources by provider."""

    verifications: Mapping[str, VerificationRecord] = field(default_factory=dict)
    listing: ListingRecord | None = None
    sources: Mapping[str, RevenueSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProofView:
    """One source of a listing as it is read: its machine and its latest good sync."""

    verification: VerificationRecord
    snapshot: RevenueSnapshot | None = None


@dataclass(frozen=True, slots=True)
class ListingView:
    """A listing as it is read: the seller's words, and a proof for each provider, in their order."""

    listing: ListingRecord
    proofs: tuple[ProofView, ...]


VIEW: Final = """
SELECT l AS listing,
    (SELECT s.visibility::text FROM listing_visibility s WHERE s.listing_id = l.id) AS visibility,
    (SELECT d FROM listing_details d WHERE d.listing_id = l.id) AS details,
    ARRAY(SELECT v FROM listing_verifications v WHERE v.listing_id = l.id) AS verifications,
    ARRAY(
        SELECT s.snapshot FROM listing_verifications v
        CROSS JOIN LATERAL (
            SELECT r AS snapshot FROM revenue_snapshots r
            WHERE r.listing_id = l.id AND r.source = v.provider AND r.shop_domain = v.shop_domain
            ORDER BY r.window_end DESC LIMIT 1
        ) s
        WHERE v.listing_id = l.id
    ) AS snapshots
FROM listings l
WHERE l.deleted_at IS NULL
"""

OF_USER: Final = f"""
SELECT found.* FROM members m CROSS JOIN LATERAL ({VIEW}
  AND l.organization_id = m.organization_id AND {{}} ORDER BY l.id DESC LIMIT $2
) AS found
WHERE m.user_id = $1 ORDER BY (found.listing).id DESC LIMIT $2
"""  # noqa: S608 - put together from constants
FLAGGED: Final = f"""
WITH RECURSIVE once(listing_id) AS (
    (SELECT listing_id FROM revenue_snapshots WHERE flags <> '[]' AND {{}}
    ORDER BY listing_id DESC LIMIT 1)
    UNION ALL
    SELECT (
        SELECT r.listing_id FROM revenue_snapshots r
        WHERE r.flags <> '[]' AND r.listing_id < once.listing_id
        ORDER BY r.listing_id DESC LIMIT 1)
    FROM once WHERE once.listing_id IS NOT NULL
)
SELECT found.* FROM once CROSS JOIN LATERAL ({VIEW}
  AND l.id = once.listing_id AND EXISTS (
    SELECT 1 FROM listing_verifications v
    CROSS JOIN LATERAL (
        SELECT r.flags FROM revenue_snapshots r
        WHERE r.listing_id = l.id AND r.source = v.provider AND r.shop_domain = v.shop_domain
        ORDER BY r.window_end DESC LIMIT 1
    ) s
    WHERE v.listing_id = l.id AND v.state <> 'revoked' AND s.flags ?| $2::text[]
  ) LIMIT 1) AS found
LIMIT $1
"""  # noqa: S608 - put together from constants
"""Steps from one listing that ever had a flag to the one before it, until the page is full."""


async def load(database: Database, listing_ids: Sequence[str]) -> dict[str, ListingRows]:
    """Read listings back; an unknown one has nothing."""
    ids = list(listing_ids)
    listings = await database.fetch(
        """
        SELECT l AS listing, s.visibility::text AS visibility, d AS details
        FROM listings l LEFT JOIN listing_visibility s ON s.listing_id = l.id
        LEFT JOIN listing_details d ON d.listing_id = l.id
        WHERE l.id = ANY($1::text[])
        """,
        ids,
    )
    machines = await database.fetch(
        "SELECT * FROM listing_verifications WHERE listing_id = ANY($1::text[])", ids
    )
    sources = await database.fetch(
        "SELECT * FROM revenue_sources WHERE listing_id = ANY($1::text[])", ids
    )
    by_listing = {row["listing"]["id"]: _listing(row) for row in listings}
    by_machine: dict[str, dict[str, VerificationRecord]] = {id: {} for id in ids}
    by_source: dict[str, dict[str, RevenueSource]] = {id: {} for id in ids}
    for row in machines:
        by_machine[row["listing_id"]][row["provider"]] = VERIFICATION.read(row)
    for row in sources:
        by_source[row["listing_id"]][row["provider"]] = SOURCE.read(row)
    return {id: ListingRows(by_machine[id], by_listing.get(id), by_source[id]) for id in ids}


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


async def titles_of(database: Reader, listing_ids: Sequence[str]) -> dict[str, str]:
    """Read what listings are called, those that were deleted among them."""
    rows = await database.fetch(
        "SELECT id, title FROM listings WHERE id = ANY($1::text[])", list(set(listing_ids))
    )
    return {row["id"]: row["title"] for row in rows}


async def page_of_user(
    database: Database, user_id: str, organization_id: str | None, after: str | None, limit: int
) -> list[ListingView]:
    """List the listings of a user's organizations, or of one of them, newest first."""
    wanted = Conditions(user_id, limit)
    wanted.add("m.organization_id = {}", organization_id)
    wanted.add("l.id < {}", after)
    rows = await database.fetch(OF_USER.format(wanted), *wanted.args)
    return [read_view(row) for row in rows]


async def page_flagged(
    database: Reader, flags: Sequence[str], after: str | None, limit: int
) -> list[ListingView]:
    """List the listings whose latest numbers carry one of these flags, newest first."""
    wanted = Conditions(limit, list(flags))
    wanted.add("listing_id < {}", after)
    rows = await database.fetch(FLAGGED.format(wanted), *wanted.args)
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


async def source_of(
    database: Database, listing_id: str, provider: str = COMMERCE
) -> RevenueSource | None:
    """Read where a listing's revenue is read, with its sealed secret.

    None from the moment the shop removed the app of a store of the seller's: the listing hears of
    that a little later, and no credential may be used meanwhile.
    """
    row = await database.fetchrow(
        """
        SELECT * FROM revenue_sources r
        WHERE listing_id = $1 AND provider = $2 AND revoked_at IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM integration_connections c JOIN stores s ON s.id = c.store_id
            WHERE c.shop_domain = r.shop_domain AND s.organization_id = r.organization_id
              AND c.status = 'revoked'
              AND (c.metadata->>'uninstalledAt')::timestamptz >= r.connected_at
          )
        """,
        listing_id,
        provider,
    )
    return SOURCE.read(row) if row else None


async def listings_of_shop(database: Database, organization_id: str, shop_domain: str) -> list[str]:
    """Name the listings of an organization that a shop backs now."""
    rows = await database.fetch(
        """
        SELECT listing_id FROM revenue_sources
        WHERE organization_id = $1 AND shop_domain = $2 AND revoked_at IS NULL
          AND provider = 'commerce'
        ORDER BY listing_id
        """,
        organization_id,
        shop_domain,
    )
    return [row["listing_id"] for row in rows]


async def listings_of_store(
    database: Reader, store_id: str, organization_id: str, shop_domain: str | None
) -> list[ListingView]:
    """Read the listings that sell a store, or whose revenue is read from its shop."""
    rows = await database.fetch(
        f"""{VIEW} AND l.id IN (
            (SELECT id FROM listings WHERE store_id = $1 AND deleted_at IS NULL LIMIT $4)
            UNION
            (SELECT listing_id FROM revenue_sources
            WHERE provider = 'commerce' AND shop_domain = $3 AND organization_id = $2
              AND revoked_at IS NULL)
        ) ORDER BY l.id DESC LIMIT $4""",  # noqa: S608 - put together from constants
        store_id,
        organization_id,
        shop_domain,
        MOST_OF_STORE,
    )
    return [read_view(row) for row in rows]


async def to_withdraw(database: Reader, owner_id: str) -> list[str]:
    """Name the listings of a store or an organization that are neither sold nor withdrawn."""
    rows = await database.fetch(
        """
        SELECT id FROM listings WHERE (store_id = $1 OR organization_id = $1)
          AND deleted_at IS NULL AND status NOT IN ('SOLD', 'WITHDRAWN') ORDER BY id
        """,
        owner_id,
    )
    return [row["id"] for row in rows]


async def due_for_sync(database: Database) -> dict[str, bool]:
    """Name the listings that are read each hour, and whether another definition made their numbers."""
    rows = await database.fetch(
        """
        SELECT v.listing_id, bool_or(s.definition <> $2) AS redefined
        FROM listing_verifications v
        LEFT JOIN revenue_snapshots s ON s.listing_id = v.listing_id AND s.source = v.provider
            AND s.shop_domain = v.shop_domain AND s.window_end = v.last_ok_at
        WHERE v.state = ANY($1::text[])
        GROUP BY v.listing_id ORDER BY v.listing_id
        """,
        list(SYNCED_STATES),
        DEFINITION,
    )
    return {row["listing_id"]: row["redefined"] is True for row in rows}


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


def jitter(listing_id: str, *, redefined: bool = False) -> timedelta:
    """Say how long after the hour a listing's sync comes: always the same 0 to 2999 seconds.

    Numbers that another definition made are measured anew first, in a tenth of that.
    """
    wait = timedelta(seconds=zlib.crc32(listing_id.encode()) % JITTER_SECONDS)
    return wait / 10 if redefined else wait


def seal_secret(vault: Vault, listing_id: str, provider: str, secret: str) -> str:
    """Seal a client secret or a restricted key for the row of one source."""
    row = sealed_row(listing_id, provider)
    return vault.seal(
        secret, table="revenue_sources", column="sealed_secret", row=row, tenant=listing_id
    )


def open_secret(vault: Vault, source: RevenueSource) -> str:
    """Open the secret of one source; SealBroken when it cannot be, or is not there."""
    return vault.open(
        source.sealed_secret or "",
        table="revenue_sources",
        column="sealed_secret",
        row=sealed_row(source.listing_id, source.provider),
        tenant=source.listing_id,
    )


def sealed_row(listing_id: str, provider: str) -> str:
    """Name the row that a seal is for; the first provider's were sealed before there was another."""
    return listing_id if provider == COMMERCE else f"{listing_id}/{provider}"


def _listing(row: Row) -> ListingRecord:
    """Read a listing with what is kept beside it; it may be that nobody chose any."""
    found, details = LISTING.read(row["listing"]), row["details"]
    if row["visibility"]:
        found = replace(found, visibility=row["visibility"])
    if details is None:
        return found
    beside = DETAILS.read(details)
    return replace(found, private=beside.private, required_documents=beside.required_documents)


def read_view(row: Row) -> ListingView:
    """Read a joined row; a provider that was never connected has a blank machine."""
    listing = _listing(row)
    machines = {each["provider"]: VERIFICATION.read(each) for each in row["verifications"]}
    snapshots = {each["source"]: SNAPSHOT.read(each) for each in row["snapshots"]}
    proofs = tuple(
        ProofView(
            machines.get(name) or VerificationRecord(listing_id=listing.id, provider=name),
            snapshots.get(name),
        )
        for name in PROVIDERS
    )
    return ListingView(listing, proofs)
