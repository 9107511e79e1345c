"""What is kept of storefronts of the public web (rules/intelligence#registry)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal

from tolsey.storage.owners import (
    ID_ALONE,
    OF_LISTINGS,
    OF_LISTINGS_OF_STORE,
    OF_ORGANIZATION,
    OF_STORE,
    OF_USER,
    Belongs,
    RowOwner,
)
from tolsey.storage.tables import Age, Integer, Jsonb, Personal, bare, stored

PUBLIC: Final = "What anybody can read at a shop's public address."
KEPT: Final = "400 days"
"""How long changes and snapshots are kept: longer than a year, so that seasons can be compared."""


class StorefrontStatus(StrEnum):
    """How a domain stands in the registry; `stale`, `queued` and `scanning` are told by its times and scans."""

    DISCOVERED = "discovered"
    ACTIVE = "active"
    UNREACHABLE = "unreachable"
    ROBOTS_DENIED = "robots_denied"
    NOT_COMMERCE = "not_commerce"
    PASSWORD_PROTECTED = "password_protected"  # noqa: S105 - a state
    REDIRECTED = "redirected"


ScanMode = Literal["full", "light"]
ScanStage = Literal["queued", "running", "done", "failed", "cancelled"]


@stored("storefronts", key=("domain",), nobodys=PUBLIC)
@dataclass(frozen=True, slots=True, kw_only=True)
class StorefrontRow:
    """A domain of the registry. `facts` and `diagnosis` are JSON text of its last scan."""

    domain: str
    state: StorefrontStatus
    source: str
    discovered_at: datetime
    canonical: str | None = None
    platform: str | None = None
    category: str | None = None
    country: str | None = None
    currency: str | None = None
    product_count: int | None = None
    velocity: Decimal | None = None
    facts: Annotated[str, Jsonb] = "{}"
    diagnosis: Annotated[str, Jsonb] = "{}"
    scanned_at: datetime | None = None
    snapshot_at: datetime | None = None
    next_scan_at: datetime | None = None
    hold_until: datetime | None = None
    hold_seconds: Annotated[int, Integer] = 0
    failures: Annotated[int, Integer] = 0
    etag: str | None = None
    last_modified: str | None = None


@stored(
    "storefront_scans",
    key=("id",),
    retention=Age(column="ended_at", interval="30 days"),
    swept="storefrontScans",
    belongs=(OF_ORGANIZATION, OF_USER),
    export="storefrontScans",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StorefrontScan:
    """A look at a storefront that somebody or a job asked for; `report` is JSON text of what it saw."""

    id: str
    domain: str
    mode: ScanMode
    is_kept: bool
    was_restored: bool
    source: str
    organization_id: str | None
    user_id: Annotated[str | None, Personal.USER]
    state: ScanStage
    asked_at: datetime
    ended_at: datetime | None = None
    report: Annotated[str | None, Jsonb] = None


@stored(
    "intelligence_suppressions",
    key=("domain_hash",),
    retention=Age(column="lifted_at", where="lifted_at IS NOT NULL"),
    swept="suppressionsLifted",
    nobodys="A hash of a domain that is to be left alone, and why.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class IntelligenceSuppression:
    """The tombstone of a domain: it is neither scanned nor kept until it is lifted, and then goes itself."""

    domain_hash: bytes
    suppressed_at: datetime
    reason: str
    source: str
    lifted_at: datetime | None = None


SNAPSHOTS: Final = bare(
    "storefront_snapshots",
    {
        "domain": str,
        "taken_at": datetime,
        "scan_id": str,
        "product_count": int,
        "variant_count": int,
        "changed": int,
        "median_price": Decimal | None,
        "units": int | None,
        "velocity": Decimal | None,
        "velocity_low": Decimal | None,
        "velocity_high": Decimal | None,
    },
    key=("domain", "taken_at"),
    retention=Age(column="taken_at", interval=KEPT),
    swept="storefrontSnapshots",
    nobodys=PUBLIC,
)
PRODUCTS: Final = bare(
    "storefront_products",
    {
        "domain": str,
        "product_id": int,
        "title": str,
        "handle": str,
        "vendor": str,
        "product_type": str,
        "published_at": datetime | None,
        "first_seen_at": datetime,
        "changed_at": datetime,
        "gone_at": datetime | None,
    },
    key=("domain", "product_id"),
    nobodys=PUBLIC,
)
VARIANTS: Final = bare(
    "storefront_variants",
    {
        "domain": str,
        "variant_id": int,
        "product_id": int,
        "title": str,
        "sku": str,
        "price": Decimal | None,
        "compare_at_price": Decimal | None,
        "available": bool | None,
        "quantity": int | None,
        "changed_at": datetime,
        "gone_at": datetime | None,
    },
    key=("domain", "variant_id"),
    nobodys=PUBLIC,
)
CHANGES: Final = bare(
    "storefront_changes",
    {
        "domain": str,
        "at": datetime,
        "variant_id": int,
        "kind": str,
        "product_id": int,
        "before": str | None,
        "after": str | None,
    },
    key=("domain", "at", "variant_id", "kind"),
    retention=Age(column="at", interval=KEPT),
    swept="storefrontChanges",
    nobodys=PUBLIC,
)


@stored(
    "competitors",
    key=("store_id", "domain"),
    belongs=(OF_STORE, Belongs(to=RowOwner.USER, by="added_by", stays=ID_ALONE)),
    export="competitors",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A storefront that a store competes with, as its people named it."""

    store_id: str
    domain: str
    added_by: Annotated[str, Personal.USER]
    added_at: datetime


@stored(
    "calibrating_listings",
    key=("listing_id",),
    belongs=(
        OF_LISTINGS,
        OF_LISTINGS_OF_STORE,
        Belongs(to=RowOwner.USER, by="agreed_by", stays=ID_ALONE),
    ),
    export="calibratingListings",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratingListing:
    """A listing whose seller lets its verified revenue correct what is estimated of others."""

    listing_id: str
    domain: str
    agreed_by: Annotated[str, Personal.USER]
    agreed_at: datetime


@stored(
    "calibrations",
    key=("fitted_at",),
    retention=Age(column="fitted_at", interval=KEPT),
    swept="calibrations",
    nobodys="What many shops have in common; none of them can be told from it.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """What estimates were corrected by from a moment on."""

    fitted_at: datetime
    factor: Decimal
    spread: Decimal
    shops: Annotated[int, Integer]
    median_error: Decimal
