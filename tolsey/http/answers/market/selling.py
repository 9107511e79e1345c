"""Listings and their verification, as their seller and as anyone sees them."""

from datetime import date
from typing import Annotated

from pydantic import Field

from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.storage.records.selling.listing import Visibility


class RangeAnswer(ApiAnswer):
    """What a metric lies in: at least `from`, and less than `below`."""

    low: Annotated[int, Field(serialization_alias="from")]
    high: Annotated[int, Field(serialization_alias="below")]


class FiguresAnswer(ApiAnswer):
    """Metrics; one that is shown as a range is null, and its range stands in `ranges` by its name."""

    ranges: dict[str, RangeAnswer] = Field(default_factory=dict)


class OtherCurrencyAnswer(FiguresAnswer):
    """Numbers in another currency, in its minor units: none is converted."""

    currency: str
    mrr: int | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    annualised: int | None


class CorroborationAnswer(FiguresAnswer):
    """The other source beside the first, with the difference in percent of the first."""

    source: str
    state: str
    currency: str | None
    mrr: int | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    synced_at: Timestamp | None
    difference_percent: str | None
    flags: list[str]


class VerificationAnswer(FiguresAnswer):
    """How far a listing's numbers are proven; they are minor units, and null without a badge.

    `visibility` says of each metric how the seller shows it: `exact`, `bucket` or `hidden`.
    """

    state: str
    visibility: dict[str, Visibility]
    source: str | None
    definition: str
    currency: str | None
    mrr: int | None
    arr: int | None
    mrr_at_risk: int | None
    subscribers: int | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    annualised: int | None
    refunds_of_earlier_orders30d: Annotated[
        int | None, Field(serialization_alias="refundsOfEarlierOrders30d")
    ]
    tax_included: str | None
    metered_items: int | None
    other_currencies: list[OtherCurrencyAnswer]
    window_start: Timestamp | None
    window_end: Timestamp | None
    synced_at: Timestamp | None
    flags: list[str]
    corroboration: CorroborationAnswer | None


class SignatureAnswer(ApiAnswer):
    """An Ed25519 signature (base64url) over the RFC 8785 form of what its document is."""

    algorithm: str
    key_id: str
    listing: str
    signed_at: Timestamp
    value: str


class AttestedAnswer(VerificationAnswer):
    """What is signed of a verification: `commitment` binds it to the metrics that it does not show.

    It is the SHA-256 (base64url) of their opening in RFC 8785 form.
    """

    commitment: str | None


class SignedVerificationAnswer(AttestedAnswer):
    """A verification, signed so that anyone can check it offline."""

    signature: SignatureAnswer


class OpeningAnswer(ApiAnswer):
    """The metrics as they are that a commitment was made to, with the salt that kept them secret."""

    listing: str
    source: str
    definition: str
    window_end: Timestamp
    currency: str | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    mrr: int | None
    subscribers: int | None
    salt: str


class OpenedProofAnswer(ApiAnswer):
    """A signed verification with its opening: for a buyer to whom the seller shows the metrics."""

    document: SignedVerificationAnswer
    opening: OpeningAnswer


class ProofAnswer(ApiAnswer):
    """A listing's verification after a change of its sources."""

    verification: VerificationAnswer


class UnprovenAnswer(ApiAnswer):
    """How many orders of one source, paid through one gateway, did not count."""

    gateway: str
    source: str
    orders: int


Numbers = dict[str, dict[str, int]]
"""Numbers in minor units, by currency and then by name."""


class DefinitionChangeAnswer(ApiAnswer):
    """What the last change of the definition did to a source's numbers, and why."""

    from_: Annotated[str, Field(serialization_alias="from")]
    to: str
    at: Timestamp
    before: Numbers
    after: Numbers
    why: str


class SourceAnswer(ApiAnswer):
    """A source as its seller sees it: `account` is the shop, or the account at the processor."""

    source: str
    account: str
    state: str
    badge: str
    is_syncing: bool
    last_good_sync_at: Timestamp | None
    missing_permission: str | None
    last_error: str | None
    suspended_for: str | None
    not_counted: dict[str, int]
    unproven_payments: list[UnprovenAnswer]
    definition_change: DefinitionChangeAnswer | None


class MultiplesAnswer(ApiAnswer):
    """The price over a year of revenue, and over the profit that the seller reports."""

    annualised_revenue: float | None
    self_reported_profit: float | None


class SelfReportedAnswer(ApiAnswer):
    """Numbers that nobody but the seller stands behind."""

    label: str
    ttm_revenue: Omittable[MoneyAnswer] = None
    ttm_profit: Omittable[MoneyAnswer] = None
    hours_per_week: Omittable[float] = None
    headcount: Omittable[int] = None


class SellerStatedAnswer(ApiAnswer):
    """What the seller says to everyone."""

    id: str
    slug: str
    status: str
    title: str
    teaser: str | None
    anonymous: bool
    category: str | None
    business_model: str | None
    founded_at: date | None
    country: str | None
    asking_price: MoneyAnswer | None
    reason_for_sale: str | None
    included_assets: list[str]
    excluded_assets: list[str]
    financing_offered: bool
    self_reported: SelfReportedAnswer
    domain: str | None
    published_at: Timestamp | None


class PrivateAnswer(ApiAnswer):
    """What a buyer is shown after the NDA, and nobody before; the seller stands behind it alone."""

    business_name: str | None = None
    url: str | None = None
    profit_and_loss: str | None = None
    team: str | None = None
    ad_accounts: str | None = None
    suppliers: str | None = None
    notes: str | None = None


class SellerAccountAnswer(ApiAnswer):
    """Whether an organization can be paid for what it sells, and what the processor still wants for that.

    `required` is false where nothing is shown only to who can be paid: without a processor, or once a listing
    was shown. `begin` is where the account is made or gone on with.
    """

    organization_id: str
    required: bool
    ready: bool
    state: str
    missing: list[str]
    disabled_reason: str | None
    begin: str


class ListingAnswer(SellerStatedAnswer):
    """A listing as its seller sees it, with what they may do next."""

    organization_id: str
    store_id: str | None
    status_reason: str | None
    min_offer: MoneyAnswer | None
    auto_approve_access: bool
    private: PrivateAnswer
    required_documents: list[str]
    watchers: int
    views: int
    created_at: Timestamp
    allowed: list[str]
    verification: VerificationAnswer
    connections: list[SourceAnswer]


class PublicListingAnswer(SellerStatedAnswer):
    """A listing as anyone sees it; an anonymous one does not say where the business is."""

    multiples: MultiplesAnswer
    verification: VerificationAnswer


class DayAnswer(FiguresAnswer):
    """The last verified numbers of a day, in minor units."""

    date: date
    source: str
    definition: str
    currency: str | None
    mrr: int | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    annualised: int | None
    window_start: Timestamp
    window_end: Timestamp
    synced_at: Timestamp
    flags: list[str]


class KeyAnswer(ApiAnswer):
    """A key that verifications are signed with (RFC 7517; RFC 8037)."""

    kty: str
    crv: str
    use: str
    alg: str
    kid: str
    x: str


class KeysAnswer(ApiAnswer):
    """A JWK set, and what the signatures made with its keys are over."""

    keys: list[KeyAnswer]
    signed_document: str
    commitment: str
