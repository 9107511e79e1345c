"""SQL for sealed PDFs and the certificates of their seals."""

from typing import Final

from tolsey.storage.database import Database, Reader
from tolsey.storage.lookups import record, records
from tolsey.storage.records.selling.sealing import SealCertificate, SealedDocument
from tolsey.storage.tables import table_of

SEALED: Final = table_of(SealedDocument)
CERTIFICATE: Final = table_of(SealCertificate)


async def keep(database: Database, made: SealedDocument) -> None:
    """Keep a PDF, once for each signature: of two that were made at once the first stays."""
    await database.execute(f"{SEALED.insert} {SEALED.conflict}", *SEALED.values_of(made))


async def find(reader: Reader, signature_id: str) -> SealedDocument | None:
    """Read the PDF of a signature."""
    return await record(reader, SEALED, "signature_id = $1", signature_id)


async def certificate(reader: Reader, key_id: str) -> SealCertificate | None:
    """Read the certificate that goes with a key of the ring."""
    return await record(reader, CERTIFICATE, "key_id = $1", key_id)


async def keep_certificate(database: Database, made: SealCertificate) -> None:
    """Keep a certificate; one that is there stays as it is."""
    await database.execute(
        f"{CERTIFICATE.insert} {CERTIFICATE.conflict}", *CERTIFICATE.values_of(made)
    )


async def certificates(reader: Reader) -> list[SealCertificate]:
    """List every certificate that seals were made with, the newest first."""
    return await records(reader, CERTIFICATE, "true ORDER BY made_at DESC, key_id")
