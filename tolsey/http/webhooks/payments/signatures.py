"""Proof that an event came from the payment processor, lately: HMAC-SHA256 of time and raw body.

The header is `t=<seconds>,v1=<hex>[,v1=<hex>]`; other schemes count for nothing. Unlike the
processor's own package, this reads bytes as they are and bounds the future as well as the past.
"""

import hmac
from collections.abc import Sequence

from tolsey.http.webhooks.signatures import TIME, Forged, require_recent


def verify(body: bytes, header: bytes, secrets: Sequence[bytes], now: float) -> None:
    """Return when one of the secrets signed the body within the tolerance around now.

    Any signature may match any secret, so that secrets can be rolled; an empty one signs nothing.
    Raises Forged, or Stale, which only who knows a secret can come to see.
    """
    time, claimed = _parts(header)
    signed = b"%b.%b" % (time, body)
    proven = False
    for secret in secrets:
        if secret:
            digest = hmac.digest(secret, signed, "sha256").hex().encode()
            for one in claimed:
                proven |= hmac.compare_digest(digest, one)
    if not proven:
        raise Forged
    require_recent(time, now)


def sign(body: bytes, secret: bytes, at: int) -> bytes:
    """Write the header the way the processor does."""
    return b"t=%d,v1=%b" % (at, hmac.digest(secret, b"%d.%b" % (at, body), "sha256").hex().encode())


def _parts(header: bytes) -> tuple[bytes, list[bytes]]:
    """Read the time and the signatures that a header claims."""
    pairs = [part.partition(b"=") for part in header.split(b",")]
    times = [value for name, _, value in pairs if name == b"t"]
    claimed = [value for name, _, value in pairs if name == b"v1"]
    if len(times) != 1 or not TIME.fullmatch(times[0]) or not claimed:
        raise Forged
    return times[0], claimed
