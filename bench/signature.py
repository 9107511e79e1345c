"""What proving a signature costs: its PDF and seal, its bundle, a check of the bundle, and a day's root over many.

The peers are what a user has without us: `openssl cms` sealing and checking the same PDF detached, and the
README of the bundle, which does what `tolsey verify-bundle` does in a shell with sha256sum and openssl.
"""

import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench import measure
from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals import ledger
from tolsey.actors.listing.deals.signatures import chain
from tolsey.http.deals.evidence import bundle, checking, merkle
from tolsey.http.deals.evidence.bundle import SignatureEvidence
from tolsey.http.deals.evidence.stored import public_key
from tolsey.http.deals.sealing import rendition, seal
from tolsey.storage.records.selling.deals import (
    DealEvent,
    LegalSignature,
    SignatureEvent,
    SignatureStatus,
)
from tolsey.storage.records.selling.roots import EsignLeaf, EsignRoot
from tolsey.storage.records.selling.sealing import SealedDocument
from tolsey.storage.sealing.sealed import Vault, base64url

AT: Final = datetime(2026, 6, 15, 12, tzinfo=UTC)
DOCUMENT: Final = "<h1>Agreement</h1>" + "".join(
    f"<h2>{n}. Terms</h2><p>{'Each party does what it said. ' * 12}</p>" for n in range(12)
)
RING: Final = Vault.from_keys("k1:" + "A" * 43)


def rss() -> float:
    """Tell the most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def signed() -> tuple[LegalSignature, list[SignatureEvent]]:
    """Make a signature that both parties gave, with its chain."""
    digest = evidence.sha256(DOCUMENT.encode())
    made = LegalSignature(
        id="sig_1",
        deal_id="deal_1",
        document_type="APA",
        provider="PLATFORM",
        status=SignatureStatus.PENDING,
        hosted_url=None,
        template_version="apa",
        document_sha256=digest,
        audit_hash=chain.first_of("sig_1", digest),
        requested_by="usr_1",
        requested_at=AT,
        expires_at=AT,
    )
    events: list[SignatureEvent] = []

    def happened(event: str, role: str, data: dict[str, Any]) -> None:
        nonlocal made
        made, line = chain.happened(made, event, at=AT, by=f"usr_{role}", role=role, data=data)
        events.append(line)

    happened("request", "seller", {"documentType": "APA"})
    signers: dict[str, Any] = {}
    for role, event in (("buyer", "sign"), ("seller", "sign.last")):
        happened("view", role, {})
        consent = evidence.sha256(chain.CONSENT.encode())
        happened(event, role, {"name": role, "consentTextSha256": consent})
        signers[role] = {"userId": f"usr_{role}", "name": role, "signedAt": chain.moment(AT)}
    return replace(made, signers=orjson.dumps(signers).decode()), events


def kept() -> SignatureEvidence:
    """Make all that is kept of it, with a PDF under its seal and a root over 1,000 heads."""
    signature, events = signed()
    certificate = seal.certificate_of(RING, "k1", "bench.test", datetime.now(UTC))
    pdf = seal.sealed(rendition.pdf_of(DOCUMENT, signature, AT), RING, "k1", certificate)
    line = evidence.canonical(
        {
            "dealId": "deal_1",
            "seq": 1,
            "prevHash": ledger.first_of("deal_1"),
            "facts": {"auditHash": signature.audit_hash},
        }
    )
    heads = [evidence.sha256(b"%d" % n) for n in range(999)]
    root, ways = merkle.grown([signature.audit_hash, *heads])
    body = evidence.canonical({"day": "2026-06-15", "keyId": "k1", "root": root})
    return SignatureEvidence(
        signature=signature,
        text=DOCUMENT,
        events=events,
        ledger=[
            DealEvent(
                deal_id="deal_1", seq=1, body=line.decode(), hash=evidence.sha256(line), at=AT
            )
        ],
        roots=[
            (
                EsignLeaf(
                    signature_id="sig_1",
                    seq=signature.seq,
                    deal_id="deal_1",
                    head=signature.audit_hash,
                    day=AT.date(),
                    way=orjson.dumps(ways[0]).decode(),
                ),
                EsignRoot(
                    day=AT.date(),
                    body=body.decode(),
                    signature=base64url(RING.signing_key("k1").sign(body)),
                    key_id="k1",
                    public_key=public_key(RING, "k1"),
                    signed_at=AT,
                ),
            )
        ],
        last_root=None,
        sealed=SealedDocument(
            sha256=evidence.sha256(pdf),
            signature_id="sig_1",
            deal_id="deal_1",
            key_id="k1",
            content=pdf,
            made_at=AT,
        ),
        certificate=certificate,
    )


def timed(act: Callable[[], object], times: int) -> tuple[float, float]:
    """Do something so often; answers the median and the worst, in milliseconds."""
    took = []
    for _ in range(times):
        began = perf_counter()
        act()
        took.append(1_000 * (perf_counter() - began))
    return statistics.median(took), max(took)


def main() -> None:
    """Print what each part takes, beside the peers."""
    asked = measure.arguments(__doc__ or "").parse_args()
    times = 5 if asked.quick else 30
    measure.machine("no loop")
    before = rss()
    began = perf_counter()
    whole = kept()
    first, memory = 1_000 * (perf_counter() - began), rss() - before
    signature, certificate = whole.signature, whole.certificate or ""
    files = bundle.files_of(whole, "https://bench.test")
    pdf = files[checking.PDF]
    checking.check(files)
    bare = bundle.files_of(replace(whole, sealed=None), "https://bench.test")
    plain = rendition.pdf_of(DOCUMENT, signature, AT)
    heads = [evidence.sha256(b"%d" % n) for n in range(1_000 if asked.quick else 100_000)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        pem = RING.seal_key("k1").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / "key.pem").write_bytes(pem)
        readme = files[checking.README].decode().splitlines()
        script = "\n".join(line for line in readme if line.startswith("    "))

        def shell(*command: str) -> None:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own lines

        openssl = ("openssl", "cms", "-binary", "-in", "document.pdf", "-outform", "DER")
        rows = [
            (
                "set the PDF (typst)",
                *timed(lambda: rendition.pdf_of(DOCUMENT, signature, AT), times),
            ),
            (
                "seal it (pyHanko, PAdES)",
                *timed(
                    lambda: seal.sealed(plain, RING, "k1", certificate),
                    times,
                ),
            ),
            (
                "peer: openssl cms -sign, detached",
                *timed(
                    lambda: shell(
                        *openssl,
                        "-sign",
                        "-signer",
                        "seal/certificate.pem",
                        "-inkey",
                        "key.pem",
                        "-out",
                        "out.p7s",
                    ),
                    times,
                ),
            ),
            (
                "make the bundle",
                *timed(lambda: bundle.zipped(bundle.files_of(whole, "https://bench.test")), times),
            ),
            ("check the bundle, PDF and all", *timed(lambda: checking.check(files), times)),
            ("check one without a PDF", *timed(lambda: checking.check(bare), times)),
            ("peer: the README in a shell", *timed(lambda: shell("/bin/sh", "-c", script), times)),
            (f"the root over {len(heads):,} heads", *timed(lambda: merkle.grown(heads), 3)),
        ]
    measure.table(
        f"A document of 12 sections, its PDF of {len(pdf) // 1_000} KB, milliseconds; the first with all imports"
        f" {first:,.0f} ms and {memory:.0f} MB, {rss() - before:.0f} MB at the end",
        ["part", "median", "worst"],
        rows,
    )


if __name__ == "__main__":
    main()
