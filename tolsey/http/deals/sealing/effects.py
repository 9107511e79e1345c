"""Seals what was signed: beside the actors, one document at a time, and once."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from tolsey.actors.listing.deals.messages import SealDocument
from tolsey.actors.listing.evidence import sha256
from tolsey.http.deals.sealing import rendition, seal
from tolsey.runtime.messages import Call
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import LegalSignature, SignatureStatus
from tolsey.storage.records.selling.sealing import SealCertificate, SealedDocument
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.selling import deals, seals


class DocumentSealing:
    """Makes the PDFs of signed documents."""

    def __init__(
        self, database: Database, vault: Vault, base_url: str, clock: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._vault = vault
        self._host = urlsplit(base_url).hostname or base_url
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {SealDocument: self.seal}

    async def seal(self, call: SealDocument) -> None:
        """Make the PDF of a signed document, unless it is there."""
        found = await deals.deal_of_signature(self._database, call.signature_id)
        if found is None or found[1].status is not SignatureStatus.SIGNED:
            return
        signature = found[1]
        text = await deals.document(self._database, signature.document_sha256)
        if text is None or await seals.find(self._database, signature.id) is not None:
            return
        own = await self.certificate()
        pdf = await anyio.to_thread.run_sync(
            self._made, text, signature, own, limiter=one_at_a_time()
        )
        made = SealedDocument(
            sha256=sha256(pdf),
            signature_id=signature.id,
            deal_id=signature.deal_id,
            key_id=own.key_id,
            content=pdf,
            made_at=self._clock(),
        )
        await seals.keep(self._database, made)

    def _made(self, text: str, signature: LegalSignature, own: SealCertificate) -> bytes:
        set_at = signature.ended_at or signature.requested_at
        pdf = rendition.pdf_of(text, signature, set_at)
        return seal.sealed(pdf, self._vault, own.key_id, own.certificate)

    async def certificate(self) -> SealCertificate:
        """Find the certificate of the ring's first key, or make it: it is kept for as long as the service is."""
        key_id = self._vault.key_ids[0]
        known = await seals.certificate(self._database, key_id)
        if known is not None:
            return known
        at = self._clock()
        made = seal.certificate_of(self._vault, key_id, self._host, at)
        await seals.keep_certificate(
            self._database, SealCertificate(key_id=key_id, certificate=made, made_at=at)
        )
        # Another process may have been first: the row that is there is the one that counts.
        kept = await seals.certificate(self._database, key_id)
        return kept or SealCertificate(key_id=key_id, certificate=made, made_at=at)


@cache
def one_at_a_time() -> anyio.CapacityLimiter:
    """Bound what PDFs cost: one is made or checked at once, in one thread, whoever asks."""
    return anyio.CapacityLimiter(1)
