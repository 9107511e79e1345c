"""The proof that a call comes from our queue: a signed token (RFC 7519) over the very body that is sent."""

import hashlib
import hmac
from base64 import urlsafe_b64decode
from datetime import datetime
from typing import Any, Final

import orjson

HEADER: Final = "Queue-Signature"
OLDEST_SECONDS: Final = 300
AHEAD_SECONDS: Final = 60
"""How far the queue's clock may be ahead of ours."""
PARTS: Final = 3
LONGEST: Final = 4_096


def proven(token: str, body: bytes, key: str, now: datetime) -> dict[str, Any] | None:
    """Give the claims of a token that the queue signed for this body, at most five minutes ago; else None.

    Only HMAC with SHA-256 counts: what a token says of its own algorithm chooses nothing (RFC 8725, section 3.1).
    """
    parts = token.split(".")
    if len(token) > LONGEST or len(parts) != PARTS or not token.isascii():
        return None
    signed = hmac.digest(key.encode(), f"{parts[0]}.{parts[1]}".encode(), "sha256")
    try:
        head, claims = (orjson.loads(_decoded(one)) for one in parts[:2])
        # What a token says of its own kind is looked at only to refuse others.
        if not hmac.compare_digest(signed, _decoded(parts[2])) or head["alg"] != "HS256":
            return None
        is_of_body = hmac.compare_digest(_decoded(claims["body"]), hashlib.sha256(body).digest())
        is_ours = is_of_body and isinstance(claims["jti"], str)
    except (ValueError, TypeError, KeyError):
        return None
    return claims if is_ours and _is_timely(claims, now.timestamp()) else None


def _is_timely(claims: dict[str, Any], now: float) -> bool:
    issued, ends, begins = (claims.get(name) for name in ("iat", "exp", "nbf"))
    if not isinstance(issued, int) or not now - OLDEST_SECONDS <= issued <= now + AHEAD_SECONDS:
        return False
    if ends is not None and not (isinstance(ends, int) and now <= ends):
        return False
    return begins is None or (isinstance(begins, int) and begins <= now + AHEAD_SECONDS)


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
