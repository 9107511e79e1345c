"""What proves a signature later: its PDF, its evidence as a bundle, and all of it computed again."""

from datetime import date, timedelta
from typing import Annotated, Final

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.refusals import NotFound, Unauthorized
from tolsey.http.answers.base import Created, ListAnswer, Media, list_of
from tolsey.http.answers.market.deals import SignatureEventAnswer, signers_of
from tolsey.http.deals.evidence import bundle, stored
from tolsey.http.deals.evidence.answers import (
    EvidenceBreakAnswer,
    FileCheckAnswer,
    KnownDocumentAnswer,
    RootAnswer,
    RootProofAnswer,
    SignatureCheckAnswer,
    SignatureShareAnswer,
)
from tolsey.http.deals.parties import signature_of
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, identify, public, session
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.storage.records.selling.deals import LegalSignature
from tolsey.storage.selling import deals, roots, seals

routes = Blueprint("evidence", __name__)
tag_blueprint(routes, ["Deals"])


class LinkQuery(ApiModel):
    """By which link somebody comes who is no party."""

    token: Annotated[str, Field(max_length=100)] | None = None


SHARED_FOR: Final = timedelta(days=30)
ADDRESS: Final = "/api/marketplace/signatures/<signature_id>"


@routes.get(f"{ADDRESS}/pdf")
@session
async def read_pdf(signature_id: str) -> Annotated[Response, Media("application/pdf")]:
    """Read the PDF of a document that everybody has signed, under the service's seal."""
    _, signature = await signature_of(signature_id)
    found = await seals.find(service().database, signature.id)
    if found is None:
        raise NotFound(
            "The PDF isn't ready yet. It is created shortly after the last signature; try again"
            " in a minute."
        )
    response = Response(found.content, content_type="application/pdf")
    response.headers["Content-Disposition"] = f'attachment; filename="{signature.id}.pdf"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


@routes.get(f"{ADDRESS}/evidence")
@session
async def read_evidence(signature_id: str) -> Annotated[Response, Media("application/zip")]:
    """Read the evidence of a signature as a zip, which `tolsey verify-bundle` checks, or the lines of its README."""
    _, signature = await signature_of(signature_id)
    kept = await bundle.evidence_of(service().database, signature)
    files = bundle.files_of(kept, service().settings.base_url)
    response = Response(bundle.zipped(files), content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{signature.id}.zip"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


@routes.get(f"{ADDRESS}/verify")
@public
@limits.limited(policies.SIGNATURE_CHECKS)
async def verify_signature(signature_id: str, query_args: LinkQuery) -> SignatureCheckAnswer:
    """Compute everything about a signature again; `firstBreak` names the first part that is not what was written.

    For its parties, and for who has a link of theirs (`?token=`), who is shown no events.
    """
    signature, is_party = await shown_to(signature_id, query_args.token)
    return await checked(signature, is_party=is_party)


async def checked(signature: LegalSignature, *, is_party: bool) -> SignatureCheckAnswer:
    """Compute everything about a signature again; its events are for its parties."""
    running = service()
    kept = await bundle.evidence_of(running.database, signature)
    broken = await stored.first_break(kept, running.vault, running.settings.base_url)
    proof = next(((leaf, root) for leaf, root in reversed(kept.roots) if root is not None), None)
    return SignatureCheckAnswer(
        valid=broken is None,
        first_break=EvidenceBreakAnswer.read(broken) if broken is not None else None,
        in_ledger=bool(kept.ledger) if signature.status == "SIGNED" else None,
        document_sha256=signature.document_sha256,
        pdf_sha256=kept.sealed.sha256 if kept.sealed else None,
        audit_hash=signature.audit_hash,
        genesis=chain.first_of(signature.id, signature.document_sha256),
        signers=signers_of(signature),
        events=[SignatureEventAnswer.read(event) for event in kept.events] if is_party else [],
        root_proof=RootProofAnswer.of(*proof) if proof is not None else None,
    )


@routes.post(f"{ADDRESS}/verify")
@public
@limits.limited(policies.SIGNATURE_CHECKS)
async def verify_file(signature_id: str, query_args: LinkQuery) -> FileCheckAnswer:
    """Tell which document of the deal a file is: send its bytes as the body.

    Who has a link is told of the link's own document alone.
    """
    signature, is_party = await shown_to(signature_id, query_args.token)
    content: bytes = await request.data
    digest = evidence.sha256(content)
    found = await deals.documents_like(service().database, signature.deal_id, digest)
    return FileCheckAnswer(
        sha256=digest,
        found=[
            KnownDocumentAnswer(
                signature_id=one.id,
                document_type=one.document_type,
                status=one.status,
                part="document" if one.document_sha256 == digest else "pdf",
            )
            for one in found
            if is_party or one.id == signature.id
        ],
    )


@routes.post(f"{ADDRESS}/share")
@session
@limits.limited(policies.SIGNATURE_SHARES)
@idempotent
async def share_signature(signature_id: str) -> tuple[SignatureShareAnswer, Created]:
    """Make a link by which a stranger may check a signature for 30 days; who signed stays masked."""
    party, signature = await signature_of(signature_id)
    party.side()
    until = now() + SHARED_FOR
    token = await roots.share(
        service().database, signature, by=caller().user_id, at=now(), until=until
    )
    path = ADDRESS.replace("<signature_id>", signature_id)
    url = f"{service().settings.base_url}{path}/verify?token={token}"
    return SignatureShareAnswer(url=url, expires_at=until), 201


@routes.get("/.well-known/esign-roots.json")
@public
async def list_roots(query_args: PageQuery) -> ListAnswer[RootAnswer]:
    """List the daily roots over all signatures, newest first: keep them, and nobody can make the past anew."""
    before = date.fromisoformat(query_args.after) if query_args.after else None
    found = await roots.page(service().database, before, query_args.limit + 1)
    return list_of(
        found, query_args.limit, key=lambda one: one.day.isoformat(), answer=RootAnswer.of
    )


@routes.get("/.well-known/esign-certificates.pem")
@public
async def list_certificates() -> Annotated[Response, Media("application/x-pem-file")]:
    """Read the certificates that PDFs were ever sealed with, the newest first, for readers that are to trust them."""
    found = await seals.certificates(service().database)
    return Response(
        "".join(one.certificate for one in found), content_type="application/x-pem-file"
    )


async def shown_to(signature_id: str, token: str | None) -> tuple[LegalSignature, bool]:
    """Find a signature for whoever may check it, and whether as one of its parties; 404 for others."""
    # Whoever has a link may check that signature until it expires (rules/marketplace#evidence).
    if token and await roots.is_shared(service().database, signature_id, token, now()):
        found = await deals.deal_of_signature(service().database, signature_id)
        if found is not None:
            return found[1], False
    if await identify() is None:
        raise Unauthorized(
            "This link has expired, or you aren't signed in. Sign in, or request a new link."
        )
    _, signature = await signature_of(signature_id)
    return signature, True
