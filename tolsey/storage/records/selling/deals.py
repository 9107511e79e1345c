"""Deals about a listing: their threads, offers, and the ledger of what happened."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import ID_ALONE, OF_ORGANIZATION, Belongs, RowOwner
from tolsey.storage.tables import Jsonb, Personal, stored


class DealStage(StrEnum):
    """How far a buyer and a seller are."""

    INQUIRY = "INQUIRY"
    NDA_PENDING = "NDA_PENDING"
    NDA_SIGNED = "NDA_SIGNED"
    UNDER_OFFER = "UNDER_OFFER"
    LOI_SIGNED = "LOI_SIGNED"
    DUE_DILIGENCE = "DUE_DILIGENCE"
    APA_SIGNED = "APA_SIGNED"
    ESCROW_FUNDED = "ESCROW_FUNDED"
    TRANSFERRING = "TRANSFERRING"
    CLOSED = "CLOSED"
    DISPUTED = "DISPUTED"
    REFUND_REQUESTED = "REFUND_REQUESTED"
    REFUNDED = "REFUNDED"
    DECLINED = "DECLINED"
    WITHDRAWN = "WITHDRAWN"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"
    CLOSED_LOST = "CLOSED_LOST"


class OfferStatus(StrEnum):
    """What became of an offer."""

    PENDING = "PENDING"
    PENDING_COUNTER = "PENDING_COUNTER"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    WITHDRAWN = "WITHDRAWN"
    EXPIRED = "EXPIRED"
    COUNTERED = "COUNTERED"
    SUPERSEDED = "SUPERSEDED"


class Side(StrEnum):
    """Which of the two parties of a deal."""

    BUYER = "buyer"
    SELLER = "seller"

    @property
    def other(self) -> "Side":
        """The party across the table."""
        return Side.SELLER if self is Side.BUYER else Side.BUYER


OPEN_OFFERS: Final = (OfferStatus.PENDING, OfferStatus.PENDING_COUNTER)
BINDING: Final = (
    DealStage.UNDER_OFFER,
    DealStage.LOI_SIGNED,
    DealStage.DUE_DILIGENCE,
    DealStage.APA_SIGNED,
    DealStage.ESCROW_FUNDED,
    DealStage.TRANSFERRING,
    DealStage.DISPUTED,
)
"""One thread of a listing stands here at a time: a business is sold once (rules/marketplace#one-buyer)."""

EVIDENCE: Final = "Evidence of a deal between two parties, kept for seven years."
OF_PARTY: Final = Belongs(
    to=RowOwner.ORGANIZATION,
    by="deal_id IN (SELECT id FROM deal_threads WHERE buyer_id = $1 OR seller_id = $1)",
    stays=EVIDENCE,
)


@stored(
    "deal_threads",
    key=("id",),
    belongs=(
        Belongs(to=RowOwner.ORGANIZATION, by="(buyer_id = $1 OR seller_id = $1)", stays=EVIDENCE),
        Belongs(to=RowOwner.USER, by="requested_by", stays=EVIDENCE),
    ),
    export="dealThreads",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealThread:
    """One buyer's way to one business, as far as it is: a row of deal_threads.

    `seq` and `hash` are of the last event of its ledger, which all other fields follow from. Amounts are
    minor units; lists are JSON text.
    """

    id: str
    listing_id: str
    seller_id: str
    buyer_id: str
    requested_by: Annotated[str, Personal.USER]
    stage: DealStage
    entered_at: datetime
    """When it came to its stage."""
    created_at: datetime
    moved_at: datetime
    seq: int = 0
    hash: str = ""
    message: Annotated[str | None, Personal.FREE_TEXT] = None
    reason: Annotated[str | None, Personal.FREE_TEXT] = None
    """What the last of those said who had to give a reason."""
    nda_signed_at: datetime | None = None
    loi_signed_at: datetime | None = None
    apa_signed_at: datetime | None = None
    escrow_id: str | None = None
    escrow_funded_at: datetime | None = None
    escrow_released_at: datetime | None = None
    closed_at: datetime | None = None
    accepted_offer_id: str | None = None
    price: int | None = None
    currency: str | None = None
    leads: Annotated[str, Jsonb] = "[]"
    """When all other threads waited for this one: [[from, until], ...]; the last may have no end."""
    exclusivity_until: datetime | None = None
    exclusivity_proposed_by: str | None = None
    exclusivity_proposed_until: datetime | None = None
    fast_track: Annotated[str, Jsonb] = "[]"
    """Who agreed to go without due diligence."""
    diligence: Annotated[str, Jsonb] = "[]"
    apa_terms: Annotated[str | None, Jsonb] = None
    """Price, assets and inspection as the APA froze them."""
    apa_terms_sha256: str | None = None
    cancel_proposed_by: str | None = None
    cancel_proposed_at: datetime | None = None
    escrow_evidence: Annotated[str | None, Personal.FREE_TEXT] = None
    escrow_event_id: str | None = None
    funding_confirmed_at: datetime | None = None
    transfer: Annotated[str, Jsonb] = "[]"
    inspection_ends_at: datetime | None = None
    accepted_by_buyer_at: datetime | None = None
    """When the buyer had accepted every item."""
    refund_requested_at: datetime | None = None
    refund_reason: str | None = None
    returns: Annotated[str, Jsonb] = "[]"
    escalated: bool = False


@stored(
    "deal_offers",
    key=("id",),
    belongs=(OF_PARTY, Belongs(to=RowOwner.USER, by="made_by", stays=EVIDENCE)),
    export="dealOffers",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealOffer:
    """What one party would agree to: a row of deal_offers; `terms` is JSON text of its type's own."""

    id: str
    deal_id: str
    parent_id: str | None = None
    side: Side
    """Whose offer it is."""
    status: OfferStatus
    amount: int
    currency: str
    type: str
    terms: Annotated[str, Jsonb] = "{}"
    inventory: str
    contingencies: Annotated[str, Jsonb] = "[]"
    closing_by: date | None = None
    proof_of_funds: Annotated[str | None, Personal.FREE_TEXT] = None
    message: Annotated[str | None, Personal.FREE_TEXT] = None
    valid_until: datetime
    made_by: Annotated[str, Personal.USER]
    made_at: datetime
    ended_at: datetime | None = None


@stored(
    "offer_drafts",
    key=("offer_id", "side"),
    belongs=(OF_ORGANIZATION, Belongs(to=RowOwner.USER, by="drafted_by", stays=ID_ALONE)),
    export="offerDrafts",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class OfferDraft:
    """An answer to an offer that an agent prepared for a party, which the other does not see: a row of offer_drafts.

    `counter` is JSON text of the terms as the API takes them. A person of the party sends it, or discards it.
    """

    offer_id: str
    deal_id: str
    side: Side
    """Whose answer it would be."""
    organization_id: str
    reply: str
    counter: Annotated[str | None, Jsonb, Personal.FREE_TEXT] = None
    note: Annotated[str | None, Personal.FREE_TEXT] = None
    """Why, in the agent's words, for whoever decides."""
    drafted_by: Annotated[str, Personal.USER]
    drafted_at: datetime
    discarded_at: datetime | None = None


@stored(
    "deal_events",
    appended=("deal_id", "seq"),
    belongs=(OF_PARTY,),
    export="dealEvents",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealEvent:
    """A line of a deal's ledger: `body` is its exact RFC 8785 text, `hash` the sha256 of that."""

    deal_id: str
    seq: int
    body: Annotated[str, Personal.FREE_TEXT]
    hash: str
    at: datetime


class SignatureStatus(StrEnum):
    """How far a document is signed."""

    PENDING = "PENDING"
    VIEWED = "VIEWED"
    SIGNED = "SIGNED"
    DECLINED = "DECLINED"
    EXPIRED = "EXPIRED"
    VOIDED = "VOIDED"
    FAILED = "FAILED"


OPEN_SIGNATURES: Final = (SignatureStatus.PENDING, SignatureStatus.VIEWED)


@stored(
    "legal_documents",
    key=("sha256",),
    conflict="ON CONFLICT (sha256) DO NOTHING",
    belongs=(OF_PARTY,),
    export="legalDocuments",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LegalDocument:
    """The exact text of what is signed, kept once under its sha256: a row of legal_documents."""

    sha256: str
    deal_id: str
    content: Annotated[str, Personal.FREE_TEXT]
    made_at: datetime


@stored(
    "legal_signatures",
    key=("id",),
    belongs=(OF_PARTY, Belongs(to=RowOwner.USER, by="requested_by", stays=EVIDENCE)),
    export="legalSignatures",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class LegalSignature:
    """A document that both parties are to sign: a row of legal_signatures.

    `audit_hash` is of the last of its events; `signers` is JSON text: who signed, by their side.
    """

    id: str
    deal_id: str
    document_type: str
    provider: str
    status: SignatureStatus
    hosted_url: str | None
    template_version: str
    document_sha256: str
    signers: Annotated[str, Jsonb, Personal.FREE_TEXT] = "{}"
    seq: int = 0
    audit_hash: str
    requested_by: Annotated[str, Personal.USER]
    requested_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None


@stored(
    "deal_files",
    appended=("id",),
    belongs=(OF_PARTY, Belongs(to=RowOwner.USER, by="added_by", stays=EVIDENCE)),
    export="dealFiles",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealFile:
    """A file of a deal's data room: a row of deal_files; `level` is from which on a buyer reads it."""

    id: str
    deal_id: str
    side: Side
    level: int
    kind: str
    name: Annotated[str, Personal.FREE_TEXT]
    content_type: str
    sha256: str
    size: int
    added_by: Annotated[str, Personal.USER]
    added_at: datetime


@stored(
    "deal_views",
    appended=("id",),
    belongs=(OF_PARTY, Belongs(to=RowOwner.USER, stays=EVIDENCE)),
    export="dealViews",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealViewing:
    """That somebody looked at what a deal keeps from the public: a row of deal_views; `what` is a file's id or `listing`."""

    id: str
    deal_id: str
    role: str
    user_id: Annotated[str, Personal.USER]
    what: str
    at: datetime


@stored(
    "deal_metrics",
    appended=("signature_id",),
    belongs=(OF_PARTY,),
    export="dealMetrics",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class DealMetrics:
    """The verified figures of a business as a document was asked for: a row of deal_metrics.

    `agreed` has those of the letter of intent that both parties signed before, `percent` says how far revenue
    went since, and `moved` that this is more than both have to acknowledge. Figures are JSON text.
    """

    signature_id: str
    deal_id: str
    document_type: str
    figures: Annotated[str, Jsonb]
    agreed: Annotated[str | None, Jsonb] = None
    percent: str | None = None
    moved: bool = False
    at: datetime


@stored(
    "signature_events",
    appended=("signature_id", "seq"),
    belongs=(OF_PARTY,),
    export="signatureEvents",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureEvent:
    """What happened to a document that is signed: `body` is its exact RFC 8785 text, `hash` the sha256 of that."""

    signature_id: str
    deal_id: str
    seq: int
    body: Annotated[str, Personal.FREE_TEXT]
    hash: str
    at: datetime
