"""The seal under a PDF: made once after the last signature, and broken by any later change."""

import shutil
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from cryptography import x509

from tests.http.deals.sealing.conftest import Seals
from tests.http.deals.sealing.test_renditions import NOON, signature_of
from tests.http.deals.table import MARKET, Table, signed
from tests.http.people import KEYRING, Clock
from tolsey.actors.listing.deals.messages import SealDocument
from tolsey.actors.listing.evidence import sha256
from tolsey.http.deals.sealing import rendition, seal
from tolsey.http.deals.sealing.effects import DocumentSealing
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault

DOCUMENT = "<h1>Agreement</h1><p>Both agree.</p>"


def status_of(pdf: bytes, certificate: str) -> Any:
    """Ask pyHanko, which is not ours, what it thinks of a PDF."""
    from pyhanko.keys import load_certs_from_pemder_data  # noqa: PLC0415
    from pyhanko.pdf_utils.reader import PdfFileReader  # noqa: PLC0415
    from pyhanko.sign.validation import validate_pdf_signature  # noqa: PLC0415
    from pyhanko_certvalidator import ValidationContext  # noqa: PLC0415

    roots = list(load_certs_from_pemder_data(certificate.encode()))
    (one,) = PdfFileReader(BytesIO(pdf)).embedded_signatures
    return validate_pdf_signature(one, ValidationContext(trust_roots=roots, allow_fetching=False))


async def test_a_signed_document_has_a_pdf_that_strangers_readers_judge_whole(
    table: Table, seals: Seals, tmp_path: Path, database: Database
) -> None:
    asked = (await table.access(table.ben)).json()
    let_in = (await table.advance(table.ann, asked, "access.approve")).json()
    id = let_in["signatureId"]
    # It is made once both have signed.
    early = await table.ben.browser.get(f"{MARKET}/signatures/{id}/pdf")
    assert early.status_code == 404
    for who in (table.ben, table.ann):
        assert (await table.sign(who, id)).status_code == 200
    pdf = await seals.pdf_of(table, id)
    assert (await table.eve.browser.get(f"{MARKET}/signatures/{id}/pdf")).status_code == 404

    certificate = (await table.eve.browser.get("/.well-known/esign-certificates.pem")).text
    found = await anyio.to_thread.run_sync(status_of, pdf, certificate)
    assert found.bottom_line
    assert found.coverage.name == "ENTIRE_FILE"
    assert found.docmdp_ok
    (kept,) = await database.fetch("SELECT sha256, signature_id FROM sealed_documents")
    assert (kept["sha256"], kept["signature_id"]) == (sha256(pdf), id)
    if shutil.which("pdfsig"):
        (tmp_path / "one.pdf").write_bytes(pdf)
        said = await anyio.run_process(["pdfsig", "-nocert", str(tmp_path / "one.pdf")])
        assert b"Signature is Valid" in said.stdout
        assert b"Total document signed" in said.stdout


async def test_a_call_that_comes_again_makes_no_second_pdf(
    table: Table, seals: Seals, sealing: DocumentSealing, database: Database
) -> None:
    deal = await signed(table, table.ben)
    first = await seals.pdf_of(table, deal["signatureId"])

    await sealing.seal(
        SealDocument(signature_id=deal["signatureId"], organization_id=table.ann.organization_id)
    )
    with pytest.raises(Exception, match="only added"):
        await database.execute("DELETE FROM sealed_documents")

    assert await seals.pdf_of(table, deal["signatureId"]) == first


def test_a_changed_byte_breaks_the_seal_wherever_it_stands() -> None:
    ring = Vault.from_keys(KEYRING)
    certificate = seal.certificate_of(ring, "t1", "tolsey.test", datetime.now(UTC))
    plain = rendition.pdf_of(DOCUMENT, signature_of(DOCUMENT), NOON)
    pdf = seal.sealed(plain, ring, "t1", certificate)
    # The seal itself stands in a gap as hex digits, with room behind it: there alone zeros mean nothing.
    gap, room = pdf.index(b"/Contents <") + len(b"/Contents <"), pdf.index(b"0" * 64 + b">")
    places = [*range(7, gap, 397), *range(gap, gap + 64, 16), *range(room + 65, len(pdf), 97)]

    unnoticed = []
    for place in places:
        changed = bytearray(pdf)
        changed[place] ^= 1
        if seal.is_intact(bytes(changed), certificate):
            unnoticed.append(place)

    assert len(places) > 30
    assert unnoticed == []
    assert seal.is_intact(pdf, certificate)
    assert not seal.is_intact(pdf + b"\n%more", certificate)
    assert not seal.is_intact(plain, certificate)


async def test_a_new_key_seals_with_a_new_certificate_and_the_old_ones_stay(
    table: Table, seals: Seals, database: Database, clock: Clock
) -> None:
    deal = await signed(table, table.ben)
    pdf = await seals.pdf_of(table, deal["signatureId"])
    turned = Vault.from_keys(f"newer:{'B' * 42}A,{KEYRING}")
    await DocumentSealing(database, turned, "https://tolsey.test", clock).certificate()

    listed = (await table.eve.browser.get("/.well-known/esign-certificates.pem")).text
    found = x509.load_pem_x509_certificates(listed.encode())
    assert len(found) == 2
    assert {one.subject.rfc4514_string().split("=")[1][:13] for one in found} == {"Document seal"}
    assert (await anyio.to_thread.run_sync(status_of, pdf, listed)).bottom_line


def test_the_key_of_seals_is_the_rings_and_is_none_of_its_other_keys() -> None:
    ring = Vault.from_keys(KEYRING)
    first = ring.seal_key(ring.key_ids[0]).private_numbers().private_value

    assert (
        Vault.from_keys(KEYRING).seal_key(ring.key_ids[0]).private_numbers().private_value == first
    )
    assert first.to_bytes(32, "big") != ring.signing_key(ring.key_ids[0]).private_bytes_raw()
    with pytest.raises(KeyError):
        ring.seal_key("unknown")
