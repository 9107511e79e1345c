"""Proof that a delivery came from its platform: HMAC-SHA256 of the raw body, and what other proofs have alike."""

import base64
import hmac
import re
from collections.abc import Iterable
from typing import Final

DUMMY_SECRET: Final = b"\x00" * 32
TOLERANCE_SECONDS: Final = 300
"""A replay is refused however valid its signature is (rules/payments#events, rules/service#provider-events)."""
TIME: Final = re.compile(rb"[0-9]{1,12}")


class Forged(Exception):  # noqa: N818 - what a request is
    """No secret of ours signed these bytes."""


class Stale(Exception):  # noqa: N818 - what a request is
    """The bytes were signed with a secret of ours, too long ago or ahead of time."""


def secrets_of(setting: str | None) -> tuple[bytes, ...]:
    """Read the secrets of a setting that may hold several, such as one that is being rolled."""
    words = (word.strip() for word in (setting or "").split(","))
    return tuple(word.encode() for word in words if word)


def require_recent(time: bytes, now: float) -> None:
    """Return when what was signed at a time is not older than the tolerance, nor ahead of it. Raises Stale."""
    if abs(now - int(time)) > TOLERANCE_SECONDS:
        raise Stale


def is_signed(body: bytes, digest: bytes | None, secrets: Iterable[bytes]) -> bool:
    """Tell whether one of the secrets signed the body; an empty secret signs nothing.

    Without a secret to try, as much work is done as with one: the time taken tells no one
    whether a shop is known.
    """
    signed = tried = False
    claimed = b"" if digest is None else digest
    for secret in secrets:
        if secret:
            tried = True
            signed |= hmac.compare_digest(hmac.digest(secret, body, "sha256"), claimed)
    if not tried:
        hmac.compare_digest(hmac.digest(DUMMY_SECRET, body, "sha256"), claimed)
    return signed


def sign(body: bytes, secret: str) -> str:
    """Sign a body the way the platform does."""
    return base64.b64encode(hmac.digest(secret.encode(), body, "sha256")).decode()
