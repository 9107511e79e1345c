"""The evidence of a signature as one file: everything that it takes to check it without us."""

import zipfile
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files as packaged
from io import BytesIO
from typing import Any, BinaryIO, Final

import orjson
from jinja2 import Environment, StrictUndefined

from tolsey.actors.listing.deals.signatures import chain
from tolsey.actors.listing.evidence import sha256
from tolsey.http.deals.evidence import checking
from tolsey.http.deals.evidence.checking import EvidenceBroken, Files
from tolsey.http.deals.sealing.seal import place_of
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import (
    DealEvent,
    LegalSignature,
    Side,
    SignatureEvent,
)
from tolsey.storage.records.selling.roots import EsignLeaf, EsignRoot
from tolsey.storage.records.selling.sealing import SealedDocument
from tolsey.storage.selling import deals, roots, seals

EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The only moment that all files have: the same evidence is the same bytes."""
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 200 * 1024 * 1024
# Lines of a shell and words for people: nothing of it is HTML.
FORMS: Final = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureEvidence:
    """All that is kept of a signature, as it was read."""

    signature: LegalSignature
    text: str | None
    events: Sequence[SignatureEvent]
    ledger: Sequence[DealEvent]
    """The deal's, as far as the line that names the last event; empty while not everybody has signed."""
    roots: Sequence[tuple[EsignLeaf, EsignRoot | None]]
    last_root: EsignRoot | None
    sealed: SealedDocument | None
    certificate: str | None


async def evidence_of(database: Database, signature: LegalSignature) -> SignatureEvidence:
    """Read all that is kept of a signature."""
    sealed = await seals.find(database, signature.id)
    certificate = sealed and await seals.certificate(database, sealed.key_id)
    return SignatureEvidence(
        signature=signature,
        text=await deals.document(database, signature.document_sha256),
        events=await deals.signature_events(database, signature.id),
        ledger=await deals.ledger_until(database, signature),
        roots=await roots.of_signature(database, signature.id),
        last_root=await roots.last(database),
        sealed=sealed,
        certificate=certificate.certificate if certificate else None,
    )


def files_of(kept: SignatureEvidence, base_url: str) -> dict[str, bytes]:
    """Make the files of a bundle; what is lost is left out, and missed by whoever checks it."""
    made = dict(_files_of(kept))
    readme = _readme(kept, made, base_url).encode()
    return {checking.README: readme, **made, checking.SUMMARY: _summary(kept, made)}


def _files_of(kept: SignatureEvidence) -> Iterator[tuple[str, bytes]]:
    if kept.text is not None:
        yield checking.DOCUMENT, kept.text.encode()
    for event in kept.events:
        yield checking.EVENT.format(event.seq), event.body.encode()
    yield checking.CONSENT, chain.CONSENT.encode()
    for line in kept.ledger:
        yield checking.LEDGER_LINE.format(line.seq), line.body.encode()
    if kept.roots:
        yield from root_files(*kept.roots[-1])
    if kept.sealed is not None and kept.certificate is not None:
        yield checking.PDF, kept.sealed.content
        yield checking.SEAL, place_of(kept.sealed.content).seal
        yield checking.CERTIFICATE, kept.certificate.encode()


def root_files(leaf: EsignLeaf, root: EsignRoot | None) -> Iterator[tuple[str, bytes]]:
    """Make the files of a root, and of the way to it."""
    if root is not None:
        way = "".join(f"{side} {other}\n" for side, other in orjson.loads(leaf.way))
        padding = "=" * (-len(root.signature) % 4)
        yield checking.WAY, way.encode()
        yield checking.STATEMENT, root.body.encode()
        yield checking.STATEMENT_SIGNATURE, urlsafe_b64decode(root.signature + padding)
        yield checking.KEY, root.public_key.encode()


def _summary(kept: SignatureEvidence, made: Files) -> bytes:
    """Say in short what the service's own row says, so that whoever checks the bundle checks the row."""
    signature, signed = kept.signature, chain.signed_by(kept.signature)
    root = None
    if kept.roots and kept.roots[-1][1] is not None:
        leaf, over = kept.roots[-1]
        root = {"day": leaf.day.isoformat(), "keyId": over and over.key_id, "seq": leaf.seq}
    signers = [
        {
            "role": side.value,
            **{name: signed[side][name] for name in ("userId", "name", "signedAt")},
        }
        for side in sorted(Side)
        if side in signed
    ]
    return checking.written(
        {
            "v": 1,
            "id": signature.id,
            "dealId": signature.deal_id if kept.ledger else None,
            "documentType": signature.document_type,
            "status": signature.status.value,
            "documentSha256": signature.document_sha256,
            "auditHash": signature.audit_hash,
            "signers": signers,
            "root": root,
            "files": {name: sha256(content) for name, content in made.items()},
        }
    )


def _readme(kept: SignatureEvidence, made: Files, base_url: str) -> str:
    """Say what is in a bundle, and how it is checked with `sha256sum` and `openssl` alone."""
    hashes: dict[str, Any] = {name: sha256(content) for name, content in made.items()}
    leaf = kept.roots[-1][0] if checking.WAY in made else None
    text = packaged(__package__).joinpath("readme.txt").read_text()
    return FORMS.from_string(text).render(
        signature=kept.signature,
        base_url=base_url,
        deal_genesis=f"deal:v1:{kept.signature.deal_id}",
        ledger_hash=kept.ledger[-1].hash if kept.ledger else None,
        rooted=leaf and checking.EVENT.format(leaf.seq),
        day=leaf and leaf.day,
        place=place_of(made[checking.PDF]) if checking.PDF in made else None,
        hashes=hashes,
    )


def zipped(files: Files) -> bytes:
    """Write the files of a bundle as a zip."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def unzipped(file: BinaryIO) -> dict[str, bytes]:
    """Read a bundle, of bounded size. Raises EvidenceBroken for what is none."""
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES or sum(one.file_size for one in entries) > MOST_BYTES:
                raise EvidenceBroken("bundle", "the bundle", "is larger than any bundle is")
            for one in entries:
                if one.filename in found:
                    raise EvidenceBroken("bundle", one.filename, "is there twice")
                # Of what says less than it holds no more is read than it said.
                with archive.open(one) as content:
                    found[one.filename] = content.read(one.file_size)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise EvidenceBroken("bundle", "the bundle", f"cannot be read: {error}") from None
    return found
