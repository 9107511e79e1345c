"""What a delivery says about itself in its headers, read from one family of names only.

The platform writes them with and without `X-`, and a reverse proxy may rename them. Mixing names of
two families would let a request be signed as one thing and taken as another (product page "The
commerce platform", "Accepting both header families safely").
"""

import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

FAMILIES: Final = (b"x-commerce-", b"x-shopify-", b"shopify-")
"""In the order in which they are preferred when they say the same."""

HMAC, SHOP, TOPIC, WEBHOOK_ID, EVENT_ID, TRIGGERED_AT = range(6)
NAMES: Final = (
    b"hmac-sha256",
    b"shop-domain",
    b"topic",
    b"webhook-id",
    b"event-id",
    b"triggered-at",
)
SINGLE: Final = (HMAC, SHOP, TOPIC)
"""A second line of one of these makes a request mean two things."""

DIGEST_BYTES: Final = 32
DIGEST_CHARACTERS: Final = 44

Fields = list[bytes | None]


class HeadersDisagree(Exception):  # noqa: N818 - what is wrong with a request
    """The headers say two things at once."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the chosen family says; None where it says nothing."""

    signature: bytes | None
    shop_domain: bytes | None
    topic: bytes | None
    webhook_id: bytes | None
    event_id: bytes | None
    triggered_at: bytes | None


NOTHING: Final = Said(None, None, None, None, None, None)


class HeaderReader:
    """Reads deliveries' headers in the families that are on."""

    def __init__(self, families: Sequence[bytes] = FAMILIES) -> None:
        self._families = len(families)
        self._places = {
            family + name: (at, field)
            for at, family in enumerate(families)
            for field, name in enumerate(NAMES)
        }

    def read(self, headers: Iterable[tuple[bytes, bytes]]) -> Said:
        """Read the one family that carries a signature; HeadersDisagree when two differ."""
        found: list[Fields | None] = [None] * self._families
        place_of = self._places.get
        for name, value in headers:
            place = place_of(name) or place_of(name.lower())
            if place is None:
                continue
            family, field = place
            fields = found[family]
            if fields is None:
                fields = found[family] = [None] * len(NAMES)
            if fields[field] is None:
                fields[field] = value.strip()
            elif field in SINGLE:
                raise HeadersDisagree(f"{NAMES[field].decode()} is given twice")
        return _chosen([fields for fields in found if fields is not None])


def _chosen(found: Sequence[Fields]) -> Said:
    if len(found) > 1:
        if len({fields[HMAC] for fields in found if fields[HMAC] is not None}) > 1:
            raise HeadersDisagree("two families carry different signatures")
        shops = {shop.lower() for fields in found if (shop := fields[SHOP]) is not None}
        if len(shops) > 1:
            raise HeadersDisagree("two families name different shops")
    for fields in found:
        if fields[HMAC] is not None:
            return Said(*fields)
    return NOTHING


def digest_of(signature: bytes | None) -> bytes | None:
    """Decode a signature: the base64 of exactly 32 bytes, in its one spelling; else None."""
    if signature is None or len(signature) != DIGEST_CHARACTERS:
        return None
    try:
        digest = binascii.a2b_base64(signature, strict_mode=True)
    except ValueError:
        return None
    if len(digest) != DIGEST_BYTES or binascii.b2a_base64(digest, newline=False) != signature:
        return None
    return digest
