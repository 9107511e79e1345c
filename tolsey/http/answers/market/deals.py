"""Deals, as those who are party to them see them."""

from datetime import datetime
from typing import Annotated, Any, Self, TypeVar

import orjson
from pydantic import Field

from tolsey.actors.listing.deals.messages import DealView
from tolsey.actors.listing.deals.signatures.chain import CONSENT, CONSENT_VERSION, signed_by
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.market.offers import OfferAnswer
from tolsey.http.answers.market.selling import PrivateAnswer, PublicListingAnswer
from tolsey.http.answers.money.credits import MoneyAnswer, money
from tolsey.storage.records.selling.deals import (
    DealEvent,
    DealFile,
    DealMetrics,
    DealThread,
    LegalSignature,
    Side,
)

Shape = TypeVar("Shape", bound=ApiAnswer)


class DiligenceItemAnswer(ApiAnswer):
    """What a buyer looks into before the agreement; a blocking item has to be resolved before it is signed."""

    id: str
    title: str
    blocking: bool
    resolved_at: Timestamp | None


class TransferItemAnswer(ApiAnswer):
    """What is handed over, and what the buyer says of it."""

    id: str
    title: str
    delivered_at: Timestamp | None
    verdict: str | None
    reason: str | None


class DealAnswer(ApiAnswer):
    """A deal as it stands: `role` is the caller's, `turn` whose turn it is, `allowed` what the caller may do.

    `dueEvent` is what time does next, at `dueAt` if nobody moves the deal before; while it is paused, that
    waits too.
    """

    id: str
    listing_id: str
    role: str
    seller_organization_id: str
    buyer_organization_id: str
    stage: str
    entered_at: Timestamp
    created_at: Timestamp
    paused: bool
    turn: str | None
    due_at: Timestamp | None
    due_event: str | None
    message: str | None
    reason: str | None
    nda_signed_at: Timestamp | None
    loi_signed_at: Timestamp | None
    apa_signed_at: Timestamp | None
    escrow_id: str | None
    escrow_funded_at: Timestamp | None
    escrow_released_at: Timestamp | None
    closed_at: Timestamp | None
    price: MoneyAnswer | None
    offer: OfferAnswer | None
    signature_id: str | None
    exclusivity_until: Timestamp | None
    exclusivity_proposed_by: str | None
    exclusivity_proposed_until: Timestamp | None
    fast_track: list[str]
    diligence: list[DiligenceItemAnswer]
    purchase_terms_sha256: str | None
    cancel_proposed_by: str | None
    cancel_proposed_at: Timestamp | None
    funding_confirmed_at: Timestamp | None
    transfer_items: list[TransferItemAnswer]
    inspection_ends_at: Timestamp | None
    refund_requested_at: Timestamp | None
    refund_reason: str | None
    returns: list[str]
    escalated: bool
    events: int
    ledger_hash: str
    allowed: list[str]

    @classmethod
    def of(cls, view: DealView, role: str) -> Self:
        """Show a deal to one of its parties, or to an operator."""
        deal, offer = view.deal, view.offer
        of_offer = {"buyer": view.offer_of_buyer, "seller": view.offer_of_seller}.get(role, ())
        return cls.read(
            deal,
            **_kept(deal),
            role=role,
            paused=view.paused,
            turn=view.turn,
            due_at=view.due_at,
            due_event=view.due_event,
            signature_id=view.signature_id,
            offer=OfferAnswer.of(offer, of_offer) if offer is not None else None,
            allowed=list(
                {"buyer": view.of_buyer, "seller": view.of_seller}.get(role, view.of_operator)
            ),
        )


def _kept(deal: DealThread) -> dict[str, Any]:
    return {
        "seller_organization_id": deal.seller_id,
        "buyer_organization_id": deal.buyer_id,
        "stage": deal.stage.value,
        "price": money(deal.price, deal.currency),
        "fast_track": orjson.loads(deal.fast_track),
        "diligence": [
            DiligenceItemAnswer(
                id=one["id"],
                title=one["title"],
                blocking=one["blocking"],
                resolved_at=_moment(one["resolvedAt"]),
            )
            for one in orjson.loads(deal.diligence)
        ],
        "purchase_terms_sha256": deal.apa_terms_sha256,
        "transfer_items": [
            TransferItemAnswer(
                id=one["id"],
                title=one["title"],
                delivered_at=_moment(one["deliveredAt"]),
                verdict=one["verdict"],
                reason=one["reason"],
            )
            for one in orjson.loads(deal.transfer)
        ],
        "returns": orjson.loads(deal.returns),
        "events": deal.seq,
        "ledger_hash": deal.hash,
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


class DealEventAnswer(ApiAnswer):
    """A line of a deal's ledger: `hash` is the sha256 of `body`, which names the hash of the line before."""

    seq: int
    event: str
    actor: str
    at: Timestamp
    from_stage: str | None
    to_stage: str
    body: str
    hash: str

    @classmethod
    def of(cls, event: DealEvent) -> Self:
        """Show a line."""
        said = orjson.loads(event.body)
        return cls.read(
            event,
            event=said["event"],
            actor=said["actor"],
            from_stage=said["from"],
            to_stage=said["to"],
        )


class DisputeAnswer(ApiAnswer):
    """Something in dispute: a deal (`state` is its stage), or a payment that its payer's bank looks into."""

    kind: str
    id: str
    state: str
    reason: str | None
    amount: MoneyAnswer | None
    since: Timestamp | None
    organization_ids: list[str]


class LedgerCheckAnswer(ApiAnswer):
    """Whether a ledger is what was written: `firstBreak` is the line that is missing or changed.

    `follows` says whether all that is kept of the deal follows from its ledger.
    """

    valid: bool
    first_break: int | None
    follows: bool
    events: int
    genesis: str
    head: str


class SignerAnswer(ApiAnswer):
    """Who signed for a party; all but the first letter of the name is left to the party itself."""

    role: str
    name: str
    signed_at: Timestamp


class DealFileAnswer(ApiAnswer):
    """A file of a deal's data room; of one that is not open to the caller name, hash and size are null."""

    id: str
    side: str
    level: int
    kind: str
    name: str | None
    content_type: str
    sha256: str | None
    size: int | None
    added_at: Timestamp
    open: bool

    @classmethod
    def of(cls, file: DealFile, *, is_open: bool = True) -> Self:
        """Show a file."""
        return cls.read(
            file,
            side=file.side.value,
            name=file.name if is_open else None,
            sha256=file.sha256 if is_open else None,
            size=file.size if is_open else None,
            open=is_open,
        )


class DealFileAddressAnswer(ApiAnswer):
    """A file, and where its bytes are given to whoever comes until `urlExpiresAt`."""

    file: DealFileAnswer
    url: str
    url_expires_at: Timestamp


class DealViewingAnswer(ApiAnswer):
    """That somebody looked at a file, by its id, or at the listing."""

    role: str
    user_id: str
    what: str
    at: Timestamp


class DealFiguresAnswer(ApiAnswer):
    """Verified figures of 30 days in minor units, as a document names them; null where nothing was proven."""

    state: str
    source: str | None
    definition: str
    currency: str | None
    revenue30d: Annotated[int | None, Field(serialization_alias="revenue30d")]
    mrr: int | None
    window_end: Timestamp | None


class DealListingAnswer(ApiAnswer):
    """A listing as a buyer under an NDA sees it; `level` is how far the data room is open.

    `figures` are the verified ones of now, exact however the public is shown them: from level 2 on.
    """

    listing: PublicListingAnswer
    domain: str | None
    private: PrivateAnswer
    level: int
    figures: DealFiguresAnswer | None


class DealMetricsAnswer(ApiAnswer):
    """The figures of a document beside those of the letter of intent; with `moved` both parties acknowledge it."""

    figures: DealFiguresAnswer
    agreed: DealFiguresAnswer | None
    percent: str | None
    moved: bool

    @classmethod
    def of(cls, kept: DealMetrics) -> Self:
        """Show figures."""
        return cls(
            figures=_figures(kept.figures),
            agreed=_figures(kept.agreed) if kept.agreed else None,
            percent=kept.percent,
            moved=kept.moved,
        )


def _figures(text: str) -> DealFiguresAnswer:
    return DealFiguresAnswer.model_validate_json(text, by_alias=False, by_name=True)


class LegalSignatureAnswer(ApiAnswer):
    """A document that both parties sign: `documentSha256` is of its exact text, at `documentUrl`.

    Whoever signs echoes that hash, and consents to `consentText`. `hostedUrl` is null where another provider
    is to sign it.
    """

    id: str
    deal_id: str
    document_type: str
    provider: str
    status: str
    hosted_url: str | None
    document_url: str
    template_version: str
    document_sha256: str
    audit_hash: str
    signers: list[SignerAnswer]
    requested_at: Timestamp
    expires_at: Timestamp
    ended_at: Timestamp | None
    consent_version: str
    consent_text: str
    stage: str
    metrics: DealMetricsAnswer | None
    allowed: list[str]

    @classmethod
    def of(
        cls,
        signature: LegalSignature,
        stage: str,
        *,
        allowed: list[str],
        url: str,
        metrics: DealMetrics | None,
    ) -> Self:
        """Show a signature."""
        return cls.read(
            signature,
            metrics=DealMetricsAnswer.of(metrics) if metrics is not None else None,
            status=signature.status.value,
            document_url=url,
            signers=signers_of(signature),
            consent_version=CONSENT_VERSION,
            consent_text=CONSENT,
            stage=stage,
            allowed=allowed,
        )


def signers_of(signature: LegalSignature) -> list[SignerAnswer]:
    """Show who has signed, with masked names."""
    found = signed_by(signature)
    return [
        SignerAnswer(
            role=side,
            name=f"{found[side]['name'][:1]}…",
            signed_at=datetime.fromisoformat(found[side]["signedAt"]),
        )
        for side in Side
        if side in found
    ]


class SignatureEventAnswer(ApiAnswer):
    """A line of a signature's chain: `hash` is the sha256 of `body`."""

    seq: int
    body: str
    hash: str
