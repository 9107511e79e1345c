"""What proves a signature, as answers: what was computed again of it, its root, and links for strangers."""

from datetime import date
from typing import Literal, Self

import orjson

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.market.deals import SignatureEventAnswer, SignerAnswer
from tolsey.storage.records.selling.roots import EsignLeaf, EsignRoot


class EvidenceBreakAnswer(ApiAnswer):
    """The first part that is not what was written: `name` is its file in the bundle, `why` a sentence about it."""

    part: str
    name: str
    why: str


class RootProofAnswer(ApiAnswer):
    """The way from a head to the root of a day, signed with Ed25519: each step is a side and a hash.

    `sha256` over `left:right` climbs it; `root` stands in `statement`, whose exact bytes are signed.
    """

    day: date
    seq: int
    head: str
    way: list[str]
    root: str
    statement: str
    signature: str
    key_id: str
    public_key: str

    @classmethod
    def of(cls, leaf: EsignLeaf, root: EsignRoot) -> Self:
        """Show under which root a head is."""
        return cls.read(
            root,
            seq=leaf.seq,
            head=leaf.head,
            way=[f"{side} {other}" for side, other in orjson.loads(leaf.way)],
            root=orjson.loads(root.body)["root"],
            statement=root.body,
        )


class SignatureCheckAnswer(ApiAnswer):
    """Whether a signature is what was written: its text, its chain, its line in the ledger, its roots and its PDF.

    `rootProof` is null until the day's root is signed, `pdfSha256` until the PDF is made. Events are shown to
    the parties alone.
    """

    valid: bool
    first_break: EvidenceBreakAnswer | None
    in_ledger: bool | None
    document_sha256: str
    pdf_sha256: str | None
    audit_hash: str
    genesis: str
    signers: list[SignerAnswer]
    events: list[SignatureEventAnswer]
    root_proof: RootProofAnswer | None


class KnownDocumentAnswer(ApiAnswer):
    """Which document a file is: the page that was signed, or its PDF."""

    signature_id: str
    document_type: str
    status: str
    part: Literal["document", "pdf"]


class FileCheckAnswer(ApiAnswer):
    """What a file comes to, and which documents of the deal it is, to the byte; none when it is no such file."""

    sha256: str
    found: list[KnownDocumentAnswer]


class SignatureShareAnswer(ApiAnswer):
    """An address by which a stranger may check a signature until it expires; it is shown this once."""

    url: str
    expires_at: Timestamp


class RootAnswer(ApiAnswer):
    """A root over the heads of a day: `statement` is the exact text that `signature` (base64url, Ed25519) is of."""

    day: date
    statement: str
    signature: str
    key_id: str
    public_key: str

    @classmethod
    def of(cls, root: EsignRoot) -> Self:
        """Show a root."""
        return cls.read(root, statement=root.body)
