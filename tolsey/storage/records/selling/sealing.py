"""PDFs of signed documents, and the certificates that their seals were made with."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.records.selling.deals import OF_PARTY
from tolsey.storage.tables import Personal, stored

MADE_OF_OTHERS: Final = "Set from the document and its signatures, which an export has."


@stored(
    "sealed_documents",
    key=("sha256",),
    conflict="ON CONFLICT (signature_id) DO NOTHING",
    belongs=(OF_PARTY,),
    unexported=MADE_OF_OTHERS,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SealedDocument:
    """The PDF of what both parties signed, with the service's seal under it: a row of sealed_documents."""

    sha256: str
    signature_id: str
    deal_id: str
    key_id: str
    """Which key of the ring the seal's own key goes with."""
    content: Annotated[bytes, Personal.FREE_TEXT]
    made_at: datetime


@stored(
    "seal_certificates",
    key=("key_id",),
    conflict="ON CONFLICT (key_id) DO NOTHING",
    nobodys="Certificates of the service itself.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SealCertificate:
    """A certificate that seals are checked with, as PEM: a row of seal_certificates."""

    key_id: str
    certificate: str
    made_at: datetime
