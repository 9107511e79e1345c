"""What the PDF of a document says, and that no text of its parties is taken for markup."""

from datetime import UTC, datetime
from io import BytesIO

import pytest

from tolsey.actors.listing import evidence
from tolsey.http.deals.papers import TEMPLATES
from tolsey.http.deals.sealing import rendition
from tolsey.storage.records.selling.deals import LegalSignature, SignatureStatus

pytest.importorskip("typst")
NOON = datetime(2036, 6, 15, 12, tzinfo=UTC)
HOSTILE = (
    '#set page(width: 1pt) $x$ *bold* _it_ <label> @ref \\ ` // "quoted" 漢字 \u202e ' + "W" * 200
)


def signature_of(document: str) -> LegalSignature:
    return LegalSignature(
        id="sig_1",
        deal_id="deal_1",
        document_type="NDA",
        provider="PLATFORM",
        status=SignatureStatus.SIGNED,
        hosted_url=None,
        template_version="nda-2026-11",
        document_sha256=evidence.sha256(document.encode()),
        signers='{"buyer": {"userId": "usr_1", "name": "Ben", "signedAt": "2036-06-15T12:00:00.000Z"}}',
        audit_hash="0" * 64,
        requested_by="usr_1",
        requested_at=NOON,
        expires_at=NOON,
    )


def test_a_document_is_read_passage_by_passage_and_nothing_of_it_is_lost() -> None:
    page = (
        "<!doctype html><html><head><title>Unseen</title><style>p { x }</style></head><body>"
        "<h1>One &amp; two</h1><dl><dt>Seller</dt><dd>A\n  <b>bold</b> name</dd></dl>"
        "<p>First.</p>between<ul><li>this</li><li>that</li></ul></body></html>"
    )

    assert rendition.passages(page) == [
        ("h1", "One & two"),
        ("dt", "Seller"),
        ("dd", "A bold name"),
        ("p", "First."),
        ("p", "between"),
        ("li", "this"),
        ("li", "that"),
    ]


@pytest.mark.parametrize("name", TEMPLATES.list_templates())
def test_every_template_consists_of_passages_that_the_pdf_can_show(name: str) -> None:
    source, _, _ = TEMPLATES.loader.get_source(TEMPLATES, name)  # type: ignore[union-attr]
    blocks = rendition.passages(source)

    assert {kind for kind, _ in blocks} <= {*rendition.BLOCKS}
    assert any(kind == "h2" for kind, _ in blocks)


def test_the_pdf_holds_the_signed_page_and_takes_no_text_for_markup() -> None:
    from pyhanko.pdf_utils.reader import PdfFileReader  # noqa: PLC0415 - as the product does

    escaped = HOSTILE.replace("<", "&lt;")
    document = f"<html><body><h1>Deal</h1><p>{escaped}</p></body></html>"
    signature = signature_of(document)

    made = rendition.pdf_of(document, signature, NOON)

    assert rendition.pdf_of(document, signature, NOON) == made
    names = PdfFileReader(BytesIO(made)).root["/Names"]["/EmbeddedFiles"]["/Names"]
    attached = names[1].get_object()["/EF"]["/F"].get_object()
    assert attached.data == document.encode()


def test_the_pdf_says_who_signed_and_what_their_evidence_comes_to() -> None:
    signature = signature_of("<p>x</p>")

    said = [text for _, text in rendition.certificate(signature)]

    assert {signature.document_sha256, signature.audit_hash} <= {*said}
    assert any("Ben (usr_1)" in text for text in said)
