"""Decisions about signatures: asked for, seen, given and ended; the last one moves the deal in the same commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import orjson

from tolsey.actors.listing import evidence, lifecycle, machines
from tolsey.actors.listing.deals.cases import DealCase, Stage, is_paused
from tolsey.actors.listing.deals.messages import (
    DrawUpNda,
    EndSignature,
    RequestSignature,
    SealDocument,
    SignatureDue,
    SignatureView,
    SignDocument,
    SignerFacts,
    ViewDocument,
)
from tolsey.actors.listing.deals.metrics import compared
from tolsey.actors.listing.deals.moves import target_of
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.deals.turns import SERVICE, DealTurn
from tolsey.actors.listing.deals.views import view_of
from tolsey.actors.listing.machines import CLOCK
from tolsey.actors.listing.messages import listing
from tolsey.actors.listing.state import DealHead, ListingState
from tolsey.actors.refusals import Conflict, InvalidTransition, NotFound, Unprocessable
from tolsey.runtime.decision import Decision, Perform, Tell
from tolsey.storage.records.selling.deals import (
    OPEN_SIGNATURES,
    DealMetrics,
    DealThread,
    LegalDocument,
    LegalSignature,
    Side,
    SignatureStatus,
)
from tolsey.storage.records.selling.listing import ListingRecord

Answer = Decision[ListingState, SignatureView]

PLATFORM: Final = "PLATFORM"


def require_stage(stage: str, document_type: str, allowed: Sequence[str]) -> None:
    """Raise InvalidTransition unless a deal at this stage can have the document signed."""
    event = chain.SIGNED_BY_ALL[document_type]
    if machines.DEAL.move(stage, event) is None:
        stages = " or ".join(source for source, one in machines.DEAL.moves if one == event)
        raise InvalidTransition(
            f"This deal is at {stage}. The {document_type} can be requested only at {stages}:"
            " bring the deal there first.",
            list(allowed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDraft:
    """A document before it is put before the parties: its exact text, its form, and the address to read it at."""

    text: str
    template_version: str
    hosted_url: str


WriteNda: TypeAlias = Callable[[DealThread, ListingRecord, str], DocumentDraft]
"""Writes the NDA of a deal as its ledger stands, for the signature of the given id; it knows the parties' names."""


def request(state: ListingState, message: RequestSignature) -> Answer:
    """Put a document before both parties, if the deal could go on once it is signed."""
    turn = DealTurn(state, message.at)
    head = turn.head(message.deal_id)
    known = head.signature
    if known is not None and known.id == message.signature_id:
        return answered(turn, known)
    if known is not None and known.status in OPEN_SIGNATURES:
        raise Conflict(
            "A document in this deal is already out for signature. Sign or withdraw it first.",
            code="signature_open",
            signature=known.id,
        )
    # The text is of the deal as it stands, or it is made anew (rules/marketplace#signatures).
    if message.basis != head.deal.hash:
        raise Conflict("The deal changed after you loaded it. Request the document again.")
    return answered(turn, _put_before_parties(turn, message))


def add_nda(turn: DealTurn, deal_id: str, write_nda: WriteNda, *, actor: str, by: str) -> None:
    """Put the NDA before both parties, in the turn that approves access (rules/marketplace#access)."""
    deal = turn.head(deal_id).deal
    # Access is approved once in a deal, so one id is enough.
    signature_id = f"sig_{deal_id.removeprefix('deal_')}"
    draft = write_nda(deal, lifecycle.existing(turn.state), signature_id)
    message = RequestSignature(
        deal_id=deal_id,
        signature_id=signature_id,
        document_type="NDA",
        provider=PLATFORM,
        hosted_url=draft.hosted_url,
        template_version=draft.template_version,
        document=draft.text,
        basis=deal.hash,
        actor=actor,
        by=by,
        at=turn.at,
    )
    _put_before_parties(turn, message)


def draw_up_nda(
    state: ListingState, message: DrawUpNda, write_nda: WriteNda
) -> Decision[ListingState, None]:
    """Draw up a missing NDA; change nothing where the deal has moved, has a document, or is paused."""
    head = state.deals.get(message.deal_id)
    is_missing = (
        head is not None and head.deal.stage is Stage.NDA_PENDING and head.signature is None
    )
    if not is_missing or is_paused(state, message.deal_id):
        return Decision(state, None)
    turn = DealTurn(state, message.at)
    add_nda(turn, message.deal_id, write_nda, actor=CLOCK, by=SERVICE)
    return Decision(turn.state, None, turn.records, turn.effects)


def _put_before_parties(turn: DealTurn, message: RequestSignature) -> LegalSignature:
    """Put a document before both parties. Raises what would keep its last signature from counting."""
    head = turn.head(message.deal_id)
    event = chain.SIGNED_BY_ALL[message.document_type]
    target_of(_case(turn, head, may_sell=message.may_sell), event, asker=message.actor)
    asked = _asked(message)
    data = {
        "documentType": message.document_type,
        "templateVersion": message.template_version,
        "signers": [head.deal.buyer_id, head.deal.seller_id],
        "expiresAt": chain.moment(asked.expires_at),
    }
    turn.records.append(
        LegalDocument(
            sha256=asked.document_sha256,
            deal_id=message.deal_id,
            content=message.document,
            made_at=message.at,
        )
    )
    kept = turn.note(head, asked, "request", by=message.by, role=message.actor, data=data)
    _enter(turn, kept, message)
    due = SignatureDue(deal_id=message.deal_id, signature_id=kept.id, at=kept.expires_at)
    turn.effects.append(
        Tell(
            to=listing(turn.state.id),
            message=due,
            key=f"{kept.id}/expires",
            due_at=kept.expires_at,
        )
    )
    return kept


def _asked(message: RequestSignature) -> LegalSignature:
    digest = evidence.sha256(message.document.encode())
    return LegalSignature(
        id=message.signature_id,
        deal_id=message.deal_id,
        document_type=message.document_type,
        provider=message.provider,
        status=SignatureStatus.PENDING,
        hosted_url=message.hosted_url,
        template_version=message.template_version,
        document_sha256=digest,
        audit_hash=chain.first_of(message.signature_id, digest),
        requested_by=message.by,
        requested_at=message.at,
        expires_at=message.at + chain.VALID_FOR,
    )


def _enter(turn: DealTurn, kept: LegalSignature, message: RequestSignature) -> None:
    """Enter the request into the deal's history with the figures of its document, and tell the parties."""
    facts: dict[str, Any] = {
        "signatureId": kept.id,
        "documentType": kept.document_type,
        "documentSha256": kept.document_sha256,
    }
    said = _figures_of(message)
    if said is not None:
        turn.records.append(said)
        facts["figures"] = orjson.loads(said.figures)
        facts |= {"revenuePercent": said.percent, "revenueMoved": said.moved}
    head = turn.head(message.deal_id)
    deal = turn.enter(
        head,
        head.deal,
        event="signature.requested",
        actor=message.actor,
        by=message.by,
        facts=facts,
    )
    turn.tell(deal, "signature.requested", message.actor)
    if said is not None and said.moved:
        # Both learn it, also who asked for the document (rules/marketplace#figures).
        turn.tell(deal, "revenue.moved", CLOCK)


def _figures_of(message: RequestSignature) -> DealMetrics | None:
    """Keep the figures that a document names, beside those of the letter of intent."""
    if message.figures is None:
        return None
    move = None
    if message.agreed is not None:
        move = compared(orjson.loads(message.agreed), orjson.loads(message.figures))
    return DealMetrics(
        signature_id=message.signature_id,
        deal_id=message.deal_id,
        document_type=message.document_type,
        figures=message.figures,
        agreed=message.agreed,
        percent=move.percent if move is not None else None,
        moved=move is not None and move.is_large,
        at=message.at,
    )


def view(state: ListingState, message: ViewDocument) -> Answer:
    """Write down that a party saw the document, the first time that each does."""
    turn = DealTurn(state, message.at)
    head, found = last_document(turn, message.deal_id, message.signature_id)
    side = message.signer.side
    if found.status not in OPEN_SIGNATURES or side in chain.signed_by(found).get("seen", []):
        return answered(turn, found)
    signers = chain.signed_by(found)
    seen = {**signers, "seen": [*signers.get("seen", []), side]}
    found = replace(found, signers=orjson.dumps(seen).decode())
    data = _of_browser(message.signer)
    kept = turn.note(head, found, "view", by=message.signer.user_id, role=side, data=data)
    return answered(turn, kept)


def sign(state: ListingState, message: SignDocument) -> Answer:
    """Take a signature; the last one stamps the deal and moves it, or is not taken at all."""
    turn = DealTurn(state, message.at)
    head, found = last_document(turn, message.deal_id, message.signature_id)
    side = Side(message.signer.side)
    signers = chain.signed_by(found)
    if side in signers:
        return answered(turn, found)
    if found.provider != PLATFORM:
        raise Conflict(
            "This document is signed at the provider, not on this site. Use the provider's link"
            " to sign it."
        )
    if found.status not in OPEN_SIGNATURES or message.at >= found.expires_at:
        raise InvalidTransition(
            "This document can no longer be signed. Reload the deal to see its current document.",
            [],
        )
    if is_paused(state, message.deal_id):
        raise InvalidTransition(
            "Another buyer has exclusivity. Wait until it ends, then try again.", []
        )
    # Whoever signs says which text they saw: another one is not signed (rules/marketplace#signatures).
    if message.document_sha256 != found.document_sha256:
        raise Conflict(
            "The document changed after you opened it. Read the current version before you sign.",
            code="document_changed",
        )
    if message.consent_version != chain.CONSENT_VERSION:
        raise Unprocessable(
            f"The consent to electronic signature is missing or outdated. Send the consent version {chain.CONSENT_VERSION}.",
            code="invalid_request",
            errors=[{"field": "consentVersion", "message": "is not the present one"}],
        )
    # It blocks nothing, but nobody signs without having said that they saw it (rules/marketplace#figures).
    if message.revenue_moved and not message.acknowledged:
        raise Conflict(
            "Verified revenue has changed by more than 10% since the letter of intent. Compare"
            " both figures, then sign with `revenueAcknowledged: true`.",
            code="revenue_moved",
        )
    consent = evidence.sha256(chain.CONSENT.encode())
    data = {
        "name": message.typed_name,
        "emailSha256": message.signer.email_sha256,
        "method": chain.METHOD,
        "consentTextSha256": consent,
        "consentVersion": message.consent_version,
        "documentSha256Echo": message.document_sha256,
        "authMethod": "session",
        **({"revenueAcknowledged": True} if message.revenue_moved else {}),
        **_of_browser(message.signer),
    }
    given = {
        "userId": message.signer.user_id,
        "name": message.typed_name,
        "emailSha256": message.signer.email_sha256,
        "signedAt": chain.moment(message.at),
    }
    is_last = chain.is_last(found, side)
    found = replace(found, signers=orjson.dumps({**signers, side.value: given}).decode())
    event = "sign.last" if is_last else "sign"
    kept = turn.note(head, found, event, by=message.signer.user_id, role=side, data=data)
    if is_last:
        complete(turn, kept, by=message.signer.user_id, may_sell=message.may_sell)
    return answered(turn, kept)


def complete(turn: DealTurn, signature: LegalSignature, *, by: str, may_sell: bool) -> None:
    """Move the deal by its last signature: a guard that fails refuses the whole turn."""
    deal = turn.move(
        signature.deal_id,
        chain.SIGNED_BY_ALL[signature.document_type],
        actor=CLOCK,
        by=by,
        may_sell=may_sell,
        facts={
            "signatureId": signature.id,
            "documentSha256": signature.document_sha256,
            "auditHash": signature.audit_hash,
        },
    )
    seal = SealDocument(signature_id=signature.id, organization_id=deal.seller_id)
    turn.effects.append(Perform(seal, key=f"{signature.id}/seal"))


def end(state: ListingState, message: EndSignature) -> Answer:
    """Decline a document, or take back that one asked for it."""
    turn = DealTurn(state, message.at)
    head, found = last_document(turn, message.deal_id, message.signature_id)
    if found.status not in OPEN_SIGNATURES:
        raise InvalidTransition(
            "This document is no longer out for signature. Reload the deal to see its status.", []
        )
    data = {"reason": message.reason}
    kept = turn.note(head, found, message.event, by=message.by, role=message.side, data=data)
    turn.move(
        message.deal_id,
        "signature.ended",
        actor=CLOCK,
        by=message.by,
        facts={"signatureId": kept.id, "status": kept.status},
    )
    return answered(turn, kept)


def due(state: ListingState, message: SignatureDue) -> Decision[ListingState, None]:
    """End a document that was not signed in time."""
    turn = DealTurn(state, message.at)
    head = state.deals.get(message.deal_id)
    found = head.signature if head is not None else None
    is_open = found is not None and found.status in OPEN_SIGNATURES
    if head is None or found is None or found.id != message.signature_id or not is_open:
        return Decision(state, None)
    kept = turn.note(head, found, "timer", by=SERVICE, role="service", data={})
    if not is_paused(state, message.deal_id):
        turn.move(
            message.deal_id,
            "signature.ended",
            actor=CLOCK,
            facts={"signatureId": kept.id, "status": kept.status},
        )
    return Decision(turn.state, None, turn.records, turn.effects)


def last_document(
    turn: DealTurn, deal_id: str, signature_id: str
) -> tuple[DealHead, LegalSignature]:
    """Find a document that may still be signed. Raises what refuses one that may not."""
    head = turn.head(deal_id)
    if head.signature is None:
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        )
    # Of a deal's documents only the last can still be signed.
    if head.signature.id != signature_id:
        raise InvalidTransition(
            "This document can no longer be signed. Reload the deal to see its current document.",
            [],
        )
    return head, head.signature


def _case(turn: DealTurn, head: DealHead, *, may_sell: bool) -> DealCase:
    return DealCase(
        state=turn.state,
        deal=head.deal,
        offer=head.offer,
        actor=CLOCK,
        at=turn.at,
        may_sell=may_sell,
    )


def _of_browser(signer: SignerFacts) -> dict[str, Any]:
    return {
        "ip": signer.ip,
        "userAgent": signer.user_agent,
        "sessionIdSha256": signer.session_sha256,
    }


def answered(turn: DealTurn, signature: LegalSignature) -> Answer:
    """Answer with a signature and its deal as they are after the turn."""
    deal = view_of(turn.state, signature.deal_id, turn.at)
    reply = SignatureView(signature=signature, deal=deal)
    return Decision(turn.state, reply, turn.records, turn.effects)
