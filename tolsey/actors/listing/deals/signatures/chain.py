"""The chain of a signature: every time that somebody asked for it, saw it, signed it or ended it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.listing import evidence, machines
from tolsey.storage.records.selling.deals import (
    OPEN_SIGNATURES,
    LegalSignature,
    Side,
    SignatureEvent,
    SignatureStatus,
)

SIGNED_BY_ALL: Final = {
    "NDA": "nda.signed_by_all",
    "LOI": "loi.signed_by_all",
    "APA": "apa.signed_by_all",
}
"""What happens to a deal when everybody has signed a document of a type."""
VALID_FOR: Final = timedelta(days=14)
CONSENT_VERSION: Final = "esign-consent-2026-01"
CONSENT: Final = (
    "I agree to sign this document electronically and that my typed name is my signature."
)
METHOD: Final = "click_through_typed_name"
HAPPENED: Final = {
    "request": "requested",
    "view": "viewed",
    "sign": "signed",
    "sign.last": "signed",
    "decline": "declined",
    "timer": "expired",
    "void": "voided",
    "provider.error": "failed",
    "envelope.completed": "completed",
}
"""What a line of the chain calls each event of the machine."""

machines.SIGNATURE.require(SignatureStatus, HAPPENED)


def first_of(signature_id: str, document_sha256: str) -> str:
    """Say what the first line of a signature's chain follows."""
    return evidence.genesis("esign", "v1", signature_id, document_sha256)


def happened(
    signature: LegalSignature,
    event: str,
    *,
    at: datetime,
    by: str,
    role: str,
    data: Mapping[str, Any],
) -> tuple[LegalSignature, SignatureEvent]:
    """Move a signature by its machine, and write the line of its chain. Raises LookupError for no move."""
    source = signature.status if signature.seq else machines.NOTHING
    move = machines.SIGNATURE.moves[source, event]
    seq = signature.seq + 1
    line = {
        "v": 1,
        "signatureId": signature.id,
        "documentSha256": signature.document_sha256,
        "seq": seq,
        "type": HAPPENED[event],
        "at": moment(at),
        "actor": {"userId": by, "role": role},
        "data": data,
        "prevHash": signature.audit_hash,
    }
    body = evidence.canonical(line)
    hashed = evidence.sha256(body)
    status = SignatureStatus(move.to)
    ended = at if status not in OPEN_SIGNATURES else None
    kept = replace(signature, status=status, seq=seq, audit_hash=hashed, ended_at=ended)
    return kept, SignatureEvent(
        signature_id=signature.id,
        deal_id=signature.deal_id,
        seq=seq,
        body=body.decode(),
        hash=hashed,
        at=at,
    )


def moment(at: datetime) -> str:
    """Write a time as lines do: RFC 3339 in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def signed_by(signature: LegalSignature) -> dict[str, Any]:
    """Read who has signed, by their side."""
    found: dict[str, Any] = orjson.loads(signature.signers)
    return found


def is_last(signature: LegalSignature, side: Side) -> bool:
    """Whether everybody else has signed."""
    return side.other in signed_by(signature)


def broken_at(signature: LegalSignature, events: Iterable[SignatureEvent]) -> int | None:
    """Find the first line of a chain that is missing or is not what was written; None when it is whole."""
    first = first_of(signature.id, signature.document_sha256)
    lines = ((event.body, event.hash) for event in events)
    return evidence.broken_at(first, lines, signature.audit_hash)
