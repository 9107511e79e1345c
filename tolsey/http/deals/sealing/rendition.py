"""The PDF of a document: the same words as the HTML that was signed, which is attached, and who signed it."""

from datetime import datetime
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import orjson

from tolsey.actors.listing.deals.signatures.chain import CONSENT_VERSION, METHOD, signed_by
from tolsey.actors.listing.deals.signatures.signing import PLATFORM
from tolsey.storage.records.selling.deals import LegalSignature, Side

if TYPE_CHECKING:
    import typst

Block = tuple[str, str]
"""What a passage is (the name of its tag), and its text."""
BLOCKS: Final = ("h1", "h2", "p", "dt", "dd", "li")
CLAIM: Final = (
    "The signed original is the attached file document.html. This PDF reproduces its text. The seal"
    " shows whether the PDF was changed later. It does not prove the identity of the service or of"
    " the signers."
)
UNSEEN: Final = ("title", "style")


class _Passages(HTMLParser):
    """Reads the passages of a document, in order; what stands outside of one is a passage too."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._kind, self._text, self._unseen = "p", "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a passage."""
        del attrs
        if tag in BLOCKS:
            self.end_passage()
            self._kind = tag
        self._unseen = tag in UNSEEN

    def handle_endtag(self, tag: str) -> None:
        """End a passage."""
        if tag in BLOCKS:
            self.end_passage()
        self._unseen = False

    def handle_data(self, data: str) -> None:
        """Read on."""
        if not self._unseen:
            self._text += data

    def end_passage(self) -> None:
        """Keep what was read, if it is anything."""
        if text := " ".join(self._text.split()):
            self.blocks.append((self._kind, text))
        self._kind, self._text = "p", ""


def passages(document: str) -> list[Block]:
    """Read what a document says to the eye."""
    reader = _Passages()
    reader.feed(document)
    reader.close()
    reader.end_passage()
    return reader.blocks


def certificate(signature: LegalSignature) -> list[Block]:
    """List who signed, when and how, with the hashes of the document and its audit trail."""
    signed = signed_by(signature)
    found: list[Block] = [
        ("h1", "Signatures"),
        ("dt", "Signature ID"),
        ("dd", signature.id),
        ("dt", "Document hash (SHA-256 of the attached document.html)"),
        ("dd", signature.document_sha256),
        ("dt", "Audit hash (hash of the last event)"),
        ("dd", signature.audit_hash),
    ]
    for side in Side:
        if side in signed:
            said = signed[side]
            how = f"method {METHOD}, consent version {CONSENT_VERSION}"
            if signature.provider != PLATFORM:
                how = f"signed at {signature.provider}"
            found += [
                ("dt", f"Signed for the {side}"),
                ("dd", f"{said['name']} ({said['userId']}), {said['signedAt']}, {how}"),
            ]
    return [*found, ("p", CLAIM)]


def pdf_of(document: str, signature: LegalSignature, at: datetime) -> bytes:
    """Set a document and its signatures as a PDF, the same bytes for the same words and moment.

    It takes a few hundredths of a second of processor time: call it in a thread.
    """
    blocks = passages(document)
    read = {
        "title": blocks[0][1] if blocks else signature.document_type,
        "footer": f"{signature.id} · sha256 {signature.document_sha256}",
        "blocks": [*blocks, *certificate(signature)],
    }
    made: Any = _compiler().compile(
        files(__package__).joinpath("rendition.typ").read_bytes(),
        format="pdf",
        sys_inputs={"document": orjson.dumps(read).decode(), "html": document},
        timestamp=at.replace(microsecond=0),
    )
    return bytes(made)


@cache
def _compiler() -> "typst.Compiler":
    """Read the fonts once; letters of scripts that typst brings none for are the machine's."""
    import typst  # noqa: PLC0415 - only who makes a PDF waits for it

    return typst.Compiler()
