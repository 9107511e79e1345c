"""The service's seal under a PDF (PAdES B-B, ETSI EN 319 142-1): whatever is changed later, a reader shows.

Its key is of the ring (`Vault.seal_key`), its certificate the service's own. It proves no one's name.
"""

import re
from datetime import datetime, timedelta
from io import BytesIO
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tolsey.storage.sealing.sealed import Vault

FIELD: Final = "Seal"
NAME: Final = "Document seal"
VALID_FOR: Final = timedelta(days=365 * 20)
"""Longer than any evidence is kept: a new key is for `tolsey rotate-keys` to say, not for a date."""
BYTE_RANGE: Final = re.compile(rb"/ByteRange\s*\[\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\]")


def certificate_of(vault: Vault, key_id: str, host: str, at: datetime) -> str:
    """Make the certificate of a key, signed by that key itself, as PEM."""
    key = vault.seal_key(key_id)
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, host),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{NAME} {key_id}"[:64]),
        ]
    )
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=True,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


def sealed(pdf: bytes, vault: Vault, key_id: str, certificate: str) -> bytes:
    """Put the seal under a PDF, as its last change. It takes a tenth of a second: call it in a thread."""
    # Two seconds and 40 MB: only who seals waits for them.
    from pyhanko.keys import (  # noqa: PLC0415
        load_certs_from_pemder_data,
        load_private_key_from_pemder_data,
    )
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter  # noqa: PLC0415
    from pyhanko.sign import fields, signers  # noqa: PLC0415
    from pyhanko_certvalidator.registry import SimpleCertificateStore  # noqa: PLC0415

    key = vault.seal_key(key_id).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    (own,) = load_certs_from_pemder_data(certificate.encode())
    signer = signers.SimpleSigner(
        signing_cert=own,
        signing_key=load_private_key_from_pemder_data(key, None),
        cert_registry=SimpleCertificateStore(),  # type: ignore[no-untyped-call]
    )
    claim = signers.PdfSignatureMetadata(
        field_name=FIELD,
        subfilter=fields.SigSeedSubFilter.PADES,
        md_algorithm="sha256",
        reason="Shows any later change of this file.",
        certify=True,
        docmdp_permissions=fields.MDPPerm.NO_CHANGES,
    )
    made = signers.sign_pdf(IncrementalPdfFileWriter(BytesIO(pdf)), claim, signer=signer)
    return bytes(made.getbuffer())


def is_intact(pdf: bytes, certificate: str) -> bool:
    """Whether a PDF bears this certificate's seal over all of it. It takes a while: call it in a thread."""
    from pyhanko.keys import load_certs_from_pemder_data  # noqa: PLC0415
    from pyhanko.pdf_utils.reader import PdfFileReader  # noqa: PLC0415
    from pyhanko.sign.validation import (  # noqa: PLC0415
        SignatureCoverageLevel,
        validate_pdf_signature,
    )
    from pyhanko_certvalidator import ValidationContext  # noqa: PLC0415

    try:
        roots = list(load_certs_from_pemder_data(certificate.encode()))
        context = ValidationContext(trust_roots=roots, allow_fetching=False)
        seals = PdfFileReader(BytesIO(pdf)).embedded_signatures
        found = [validate_pdf_signature(one, context) for one in seals]
    except Exception:  # noqa: BLE001 - a damaged file breaks its reader anywhere, with whatever comes of it there
        return False
    return len(found) == 1 and all(
        one.bottom_line and one.coverage is SignatureCoverageLevel.ENTIRE_FILE for one in found
    )


class SealPlace(NamedTuple):
    """Where a seal stands in a PDF: it is of all bytes but those from `before` to `after`."""

    before: int
    after: int
    seal: bytes
    """A CMS signature (RFC 5652), without the room that is left behind it."""


def place_of(pdf: bytes) -> SealPlace:
    """Find the seal of a PDF that we sealed, by its byte range (ISO 32000-2, 12.8.1)."""
    found = [int(one) for one in list(BYTE_RANGE.finditer(pdf))[-1].groups()]
    before, after = found[1], found[2]
    room = bytes.fromhex(pdf[before + 1 : after - 1].decode())
    # A SEQUENCE of more than 255 bytes says its length in the two bytes after its tag (X.690, 8.1.3).
    return SealPlace(before, after, room[: 4 + int.from_bytes(room[2:4], "big")])
