"""What proves a signature later: its PDF, and everything about it computed again."""

from typing import Annotated

from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals import signatures
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import Media
from tolsey.http.answers.deals import SignatureCheckAnswer, SignatureEventAnswer, signers_of
from tolsey.http.deals.parties import signature_of
from tolsey.http.web.access import public, session
from tolsey.http.web.context import service
from tolsey.storage.selling import deals, seals

routes = Blueprint("evidence", __name__)
tag_blueprint(routes, ["Deals"])


@routes.get("/api/marketplace/signatures/<signature_id>/pdf")
@session
async def read_pdf(signature_id: str) -> Annotated[Response, Media("application/pdf")]:
    """Read the PDF of a document that everybody has signed, under the service's seal."""
    _, signature = await signature_of(signature_id)
    found = await seals.find(service().database, signature.id)
    if found is None:
        raise NotFound("There is no PDF yet: it is made a moment after the last signature.")
    response = Response(found.content, content_type="application/pdf")
    response.headers["Content-Disposition"] = f'attachment; filename="{signature.id}.pdf"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


@routes.get("/.well-known/esign-certificates.pem")
@public
async def list_certificates() -> Annotated[Response, Media("application/x-pem-file")]:
    """Read the certificates that PDFs were ever sealed with, the newest first, for readers that are to trust them."""
    found = await seals.certificates(service().database)
    return Response(
        "".join(one.certificate for one in found), content_type="application/x-pem-file"
    )


@routes.get("/api/marketplace/signatures/<signature_id>/verify")
@session
async def verify_signature(signature_id: str) -> SignatureCheckAnswer:
    """Compute everything about a signature again: its text, its chain, and its line in the deal's ledger."""
    party, signature = await signature_of(signature_id)
    database = service().database
    events = await deals.signature_events(database, signature_id)
    text = await deals.document(database, signature.document_sha256)
    is_text = text is not None and evidence.sha256(text.encode()) == signature.document_sha256
    broken = signatures.broken_at(signature, events)
    anchored: bool | None = None
    if signature.status == "SIGNED":
        anchored = await deals.is_in_ledger(database, party.deal.id, signature.audit_hash)
    return SignatureCheckAnswer(
        valid=is_text and broken is None and anchored is not False,
        first_break=broken,
        document_valid=is_text,
        in_ledger=anchored,
        document_sha256=signature.document_sha256,
        audit_hash=signature.audit_hash,
        genesis=signatures.first_of(signature_id, signature.document_sha256),
        signers=signers_of(signature),
        events=[SignatureEventAnswer.read(event) for event in events],
    )
