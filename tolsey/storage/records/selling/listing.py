"""A business for sale, the machine that verifies its revenue, and where that revenue is read."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import ID_ALONE, OF_LISTINGS, OF_LISTINGS_OF_STORE, Belongs, RowOwner
from tolsey.storage.tables import Elsewhere, Jsonb, Personal, stored


class ListingStatus(StrEnum):
    """Where a listing stands between a draft and a sale."""

    DRAFT = "DRAFT"
    PENDING_REVIEW = "PENDING_REVIEW"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    UNDER_OFFER = "UNDER_OFFER"
    SOLD = "SOLD"
    WITHDRAWN = "WITHDRAWN"
    EXPIRED = "EXPIRED"
    REJECTED = "REJECTED"
    SUSPENDED = "SUSPENDED"


PUBLIC_STATUSES = (
    ListingStatus.ACTIVE,
    ListingStatus.UNDER_OFFER,
    ListingStatus.PAUSED,
    ListingStatus.SOLD,
)


COMMERCE = "commerce"
PAYMENTS = "payments"
PROVIDERS = (COMMERCE, PAYMENTS)
"""Who proves revenue: the shop's platform, whose numbers come first where both are as good (it
knows tax and returns), and the payment processor."""


class VerificationState(StrEnum):
    """How far the service stands behind a listing's numbers; `none` until a source is given."""

    NONE = "none"
    PENDING = "pending"
    VERIFIED = "verified"
    VERIFIED_NEW = "verified_new"
    STALE = "stale"
    NEEDS_PERMISSION = "needs_permission"
    TOKEN_UNAVAILABLE = "token_unavailable"  # noqa: S105 - the API's word
    FAILED = "failed"
    SUSPENDED = "suspended"
    REVOKED = "revoked"


class Visibility(StrEnum):
    """How a verified metric is shown to the public (rules/revenue#what-is-shown)."""

    EXACT = "exact"
    BUCKET = "bucket"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingFields:
    """What a seller says about the business; nothing of it is verified.

    Amounts are minor units of `currency`. Assets and the self-reported numbers are JSON text.
    """

    title: str = ""
    teaser: Annotated[str | None, Personal.FREE_TEXT] = None
    anonymous: bool = False
    category: str | None = None
    business_model: str | None = None
    founded_at: date | None = None
    country: str | None = None
    asking_price: int | None = None
    currency: str | None = None
    min_offer: int | None = None
    reason_for_sale: Annotated[str | None, Personal.FREE_TEXT] = None
    included_assets: Annotated[str, Jsonb, Personal.FREE_TEXT] = "[]"
    excluded_assets: Annotated[str, Jsonb, Personal.FREE_TEXT] = "[]"
    domain: str | None = None
    self_reported: Annotated[str, Jsonb] = "{}"
    auto_approve_access: bool = False
    financing_offered: bool = False
    visibility: Annotated[str, Elsewhere] = "{}"
    """How each metric is shown, by its name; one that is not named is shown as it is. JSON text."""
    private: Annotated[str, Elsewhere] = "{}"
    """What a buyer is shown after the NDA. JSON text."""
    required_documents: Annotated[str, Elsewhere] = "[]"
    """What the data room of a deal has to have before due diligence begins. JSON text."""


WITHOUT_WORDS: Final = {
    "slug": "id",
    "title": "''",
    "teaser": "NULL",
    "reason_for_sale": "NULL",
    "domain": "NULL",
    "included_assets": "'[]'",
    "excluded_assets": "'[]'",
    "self_reported": "'{}'",
}
"""What is left of a listing whose owner is gone."""


@stored(
    "listings",
    key=("id",),
    belongs=(
        Belongs(
            to=RowOwner.ORGANIZATION,
            emptied=WITHOUT_WORDS,
        ),
        Belongs(
            to=RowOwner.STORE,
            emptied=WITHOUT_WORDS,
        ),
        Belongs(to=RowOwner.USER, by="created_by", stays=ID_ALONE),
    ),
    export="listings",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRecord(ListingFields):
    """A listing as it is kept: a row of listings."""

    id: str
    organization_id: str
    store_id: str | None = None
    slug: str
    status: ListingStatus = ListingStatus.DRAFT
    status_reason: str | None = None
    created_by: Annotated[str, Personal.USER]
    created_at: datetime
    seller_active_at: datetime
    published_at: datetime | None = None
    deleted_at: datetime | None = None


@stored(
    "listing_visibility",
    key=("listing_id",),
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="listingVisibility",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityRecord:
    """How the verified metrics of a listing are shown: apart, for the release before reads all of listings."""

    listing_id: str
    visibility: Annotated[str, Jsonb]


@stored(
    "listing_details",
    key=("listing_id",),
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="listingDetails",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ListingDetails:
    """What only buyers under an NDA are shown of a listing, and what its data rooms have to have."""

    listing_id: str
    private: Annotated[str, Jsonb, Personal.FREE_TEXT] = "{}"
    required_documents: Annotated[str, Jsonb] = "[]"


@stored(
    "listing_verifications",
    key=("listing_id", "provider"),
    belongs=(OF_LISTINGS, OF_LISTINGS_OF_STORE),
    export="listingVerifications",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRecord:
    """The verification machine of one source of a listing: a row of listing_verifications."""

    listing_id: str
    state: VerificationState = VerificationState.NONE
    since: datetime | None = None
    """When the state was entered, or its credentials were given anew."""
    generation: int = 0
    """Grows with every change of credentials, so that a sync that began before it is ignored."""
    shop_domain: str | None = None
    """The shop, or the account at the payment processor."""
    accepted_at: datetime | None = None
    last_ok_at: datetime | None = None
    verified_at: datetime | None = None
    """The last good sync that saw thirty days of history; what a badge stands on."""
    keeps_badge: bool = False
    """The same shop was connected again: the badge stays while the first sync runs."""
    syncing_since: datetime | None = None
    missing_permission: str | None = None
    last_error: str | None = None
    primary_domain: str | None = None
    suspended_for: str | None = None
    """Why it is suspended, unless an administrator doubts it."""
    redefined: Annotated[str | None, Jsonb] = None
    """JSON text: what the last change of the definition did to the numbers."""
    provider: str = COMMERCE


@stored(
    "revenue_sources",
    key=("listing_id", "provider"),
    belongs=(
        OF_LISTINGS,
        OF_LISTINGS_OF_STORE,
        Belongs(to=RowOwner.USER, by="connected_by", stays=ID_ALONE),
    ),
    export="revenueSources",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RevenueSource:
    """Where a listing's revenue is read, with the sealed secret: a row of revenue_sources.

    Of a payment processor `shop_domain` is the account, and `client_id` the end of its key.
    """

    listing_id: str
    organization_id: str
    provider: str
    shop_domain: str
    client_id: str
    sealed_secret: str | None = field(metadata={"secret": True}, repr=False)
    connected_by: Annotated[str, Personal.USER]
    connected_at: datetime
    revoked_at: datetime | None = None
