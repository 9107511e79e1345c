"""Signing: documents asked for, read, signed, declined, and checked by anyone who is party to them."""

import hashlib
from typing import Annotated, Any, Literal

import structlog
from pydantic import StringConstraints
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.listing.deals.messages import (
    EndSignature,
    ReadDeals,
    RequestSignature,
    SignatureView,
    SignDocument,
    SignerFacts,
    ViewDocument,
)
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.deals.signatures.signing import PLATFORM, require_stage
from tolsey.actors.listing.machines import OPERATOR
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import Forbidden, NotFound
from tolsey.http.answers.base import Created, Media
from tolsey.http.answers.market.deals import LegalSignatureAnswer
from tolsey.http.deals import papers
from tolsey.http.deals.bodies_of_deals import Words
from tolsey.http.deals.figures import named_figures
from tolsey.http.deals.parties import Party, may_sell, party_to, signature_of
from tolsey.http.web.access import caller, session
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.callers import addresses, cookies
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.people import accounts
from tolsey.storage.records.selling.deals import OPEN_SIGNATURES, LegalSignature, Side
from tolsey.storage.selling import deals, listings

routes = Blueprint("signing", __name__)
tag_blueprint(routes, ["Deals"])
log = structlog.get_logger()

POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"
"""A document runs nothing and reaches nothing, whatever its parties wrote into it."""
AGENT_CHARACTERS = 300


class WantedSignature(ApiModel):
    """Which document is to be signed, and where."""

    document_type: Literal["NDA", "LOI", "APA"]
    provider: Literal["PLATFORM", "EXTERNAL_A", "EXTERNAL_B"] = PLATFORM


class GivenSignature(ApiModel):
    """A signature: the name that was typed, the consent, and the hash of the text that was shown."""

    typed_name: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200)
    ]
    consent: Literal[True]
    consent_version: Annotated[str, StringConstraints(max_length=60)]
    document_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    revenue_acknowledged: bool = False


class Declined(ApiModel):
    """Why a document is not signed."""

    reason: Words


@routes.post("/api/vendor/marketplace/deals/<deal_id>/request-signature")
@session
@idempotent
async def request_signature(
    deal_id: str, data: WantedSignature
) -> tuple[LegalSignatureAnswer, Created]:
    """Put a document before both parties: the NDA, the letter of intent, or the purchase agreement."""
    party = await party_to(deal_id)
    side = party.side()
    running, deal = service(), party.deal
    (view,) = await ask(listing(deal.listing_id), ReadDeals((deal_id,), now()))
    # The text names the offer and the price that the deal has at these stages, and only then.
    require_stage(
        view.deal.stage,
        data.document_type,
        view.of_buyer if side is Side.BUYER else view.of_seller,
    )
    offered = await listings.find(running.database, deal.listing_id)
    if offered is None:
        raise NotFound(
            "This deal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    figures, agreed = await named_figures(data.document_type, deal_id, offered)
    names = await accounts.names_of(running.database, [deal.seller_id, deal.buyer_id])
    document = papers.render_document(
        data.document_type,
        view.deal,
        offered.listing,
        offer=view.offer,
        seller_name=names[deal.seller_id],
        buyer_name=names[deal.buyer_id],
        figures=figures,
        agreed=agreed,
    )
    signature_id = new_id("sig")
    is_ours = data.provider == PLATFORM
    if not is_ours:
        log.warning("esign.scaffold_only", provider=data.provider, signature_id=signature_id)
    message = RequestSignature(
        deal_id=deal_id,
        signature_id=signature_id,
        document_type=data.document_type,
        provider=data.provider,
        hosted_url=papers.document_url(running.settings.base_url, signature_id)
        if is_ours
        else None,
        template_version=papers.VERSIONS[data.document_type],
        document=document,
        basis=view.deal.hash,
        actor="B" if side is Side.BUYER else "S",
        by=caller().user_id,
        at=now(),
        may_sell=await may_sell(deal.seller_id),
        figures=figures.model_dump_json(by_alias=False) if figures is not None else None,
        agreed=agreed.model_dump_json(by_alias=False) if agreed is not None else None,
    )
    return await _shown(await ask(listing(deal.listing_id), message), party), 201


@routes.get("/api/marketplace/signatures/<signature_id>")
@session
async def get_signature(signature_id: str) -> LegalSignatureAnswer:
    """Read how far a document is signed, and what signing it takes."""
    party, signature = await signature_of(signature_id)
    return await _answer(signature, party.deal.stage, party)


@routes.get("/api/marketplace/signatures/<signature_id>/document")
@session
async def read_document(signature_id: str) -> Annotated[Response, Media("text/html")]:
    """Read the exact text that is signed; the first time that a party does is written down."""
    party, signature = await signature_of(signature_id)
    if party.roles and signature.status in OPEN_SIGNATURES:
        message = ViewDocument(
            deal_id=party.deal.id,
            signature_id=signature_id,
            signer=_signer(next(iter(party.roles))),
            at=now(),
        )
        await ask(listing(party.deal.listing_id), message)
    text = await deals.document(service().database, signature.document_sha256)
    if text is None:
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        )
    response = Response(text.encode(), content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "private, no-store"
    return response


@routes.post("/api/marketplace/signatures/<signature_id>")
@session
@idempotent
async def sign_document(signature_id: str, data: GivenSignature) -> LegalSignatureAnswer:
    """Sign for a party, as one of its owners or admins; the last signature moves the deal."""
    party, _ = await signature_of(signature_id)
    named = await deals.metrics_of(service().database, signature_id)
    message = SignDocument(
        deal_id=party.deal.id,
        signature_id=signature_id,
        typed_name=data.typed_name,
        consent_version=data.consent_version,
        document_sha256=data.document_sha256,
        signer=_signer(party.side()),
        at=now(),
        may_sell=await may_sell(party.deal.seller_id),
        revenue_moved=named is not None and named.moved,
        acknowledged=data.revenue_acknowledged,
    )
    return await _shown(await ask(listing(party.deal.listing_id), message), party)


@routes.post("/api/marketplace/signatures/<signature_id>/decline")
@session
@idempotent
async def decline_document(signature_id: str, data: Declined) -> LegalSignatureAnswer:
    """Say that a document is not signed, and why; another one may be asked for."""
    party, _ = await signature_of(signature_id)
    side = party.side()
    return await _ended(party, signature_id, "decline", side=side, reason=data.reason)


@routes.post("/api/marketplace/signatures/<signature_id>/void")
@session
@idempotent
async def void_document(signature_id: str, data: Declined) -> LegalSignatureAnswer:
    """Take back a document that one asked for, while not everybody has signed it."""
    party, signature = await signature_of(signature_id)
    # Who asked for it takes it back, or an operator (rules/marketplace#signatures).
    if signature.requested_by != caller().user_id and not party.operates:
        raise Forbidden(
            "Only the user who requested the signatures can withdraw this document. Ask them to"
            " withdraw it."
        )
    return await _ended(party, signature_id, "void", side=party.role, reason=data.reason)


async def _ended(
    party: Party, signature_id: str, event: str, *, side: str, reason: str
) -> LegalSignatureAnswer:
    message = EndSignature(
        deal_id=party.deal.id,
        signature_id=signature_id,
        event=event,
        reason=reason,
        side=side,
        by=caller().user_id,
        at=now(),
    )
    return await _shown(await ask(listing(party.deal.listing_id), message), party)


def _signer(side: Side) -> SignerFacts:
    """Say whose browser it is: what is secret of it is hashed at once."""
    known, secret = caller(), cookies.session_token() or ""
    return SignerFacts(
        user_id=known.user_id,
        side=side,
        email_sha256=_digest(known.email.lower()),
        session_sha256=_digest(secret),
        ip=str(addresses.client(request.scope, service().settings.believed_proxies) or ""),
        user_agent=request.headers.get("User-Agent", "")[:AGENT_CHARACTERS],
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _shown(view: SignatureView, party: Party) -> LegalSignatureAnswer:
    return await _answer(view.signature, view.deal.deal.stage, party)


async def _answer(signature: LegalSignature, stage: str, party: Party) -> LegalSignatureAnswer:
    return LegalSignatureAnswer.of(
        signature,
        stage,
        allowed=_allowed(signature, party),
        url=papers.document_url(service().settings.base_url, signature.id),
        metrics=await deals.metrics_of(service().database, signature.id),
    )


def _allowed(signature: LegalSignature, party: Party) -> list[str]:
    """List what the caller can do with a document."""
    if signature.status not in OPEN_SIGNATURES:
        return []
    found: list[str] = ["decline"] if party.roles else []
    done: dict[str, Any] = chain.signed_by(signature)
    if signature.provider == PLATFORM and any(side not in done for side in party.roles):
        found.append("sign")
    if signature.requested_by == caller().user_id or party.role == OPERATOR or party.operates:
        found.append("void")
    return found
