"""What becomes of a request under an `Idempotency-Key`: the rule alone, without its I/O."""

import hashlib
import hmac
from enum import Enum, auto
from typing import Any, Final

from tolsey.actors.refusals import Refusal
from tolsey.storage.idempotency import KeyRow

KEY_CHARACTERS: Final = 255
PASSING: Final = frozenset({401, 403, 408, 425, 429})
"""Refusals that say nothing of the request itself; a repeat may fare better."""
SERVER_ERRORS: Final = 500


class Fate(Enum):
    """What is done with a request whose key is known by now."""

    RUN = auto()
    REPLAY = auto()
    KEY_REUSED = auto()
    IN_PROGRESS = auto()


def is_key(text: str) -> bool:
    """Whether a header's value can be a key."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= KEY_CHARACTERS


def fingerprint_of(method: str, target: str, body: bytes) -> bytes:
    """Tell a request from others under its key: the same bytes to the same place."""
    return hashlib.sha256(f"{method} {target}\n".encode() + body).digest()


def fate_of(row: KeyRow, fingerprint: bytes) -> Fate:
    """Say whether a request runs, gets the first one's answer, or is refused, and for what."""
    # A key is one request's for a day, whatever became of it.
    if not hmac.compare_digest(row.fingerprint, fingerprint):
        return Fate.KEY_REUSED
    if row.answer is not None:
        return Fate.REPLAY
    return Fate.RUN if row.held else Fate.IN_PROGRESS


def kept_refusal(refusal: Refusal) -> dict[str, Any] | None:
    """Write down a refusal that repeats get, too; None where a repeat may try again."""
    if refusal.status in PASSING or refusal.status >= SERVER_ERRORS:
        return None
    return {
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
        "fields": refusal.fields,
    }


def refusal_in(answer: dict[str, Any]) -> Refusal | None:
    """Read the refusal out of a kept answer; None where the first request was carried out."""
    if "code" not in answer:
        return None
    return Refusal(
        answer["detail"], status=answer["status"], code=answer["code"], **answer["fields"]
    )
