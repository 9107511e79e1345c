"""What a delivery says about itself in its headers, read from one family of names only.

The platform writes them with and without `X-`, and a reverse proxy may rename them. Mixing names of
two families would let a request be signed as one thing and taken as another
(rules/shops#webhooks).
"""

import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

FAMILIES: Final = (b"x-commerce-", b"x-shopify-", b"shopify-")
"""In the order in which they are preferred when they say the same."""

ID_CHARACTERS: Final = 200
"""So much of a delivery's id is kept."""
DIGEST_BYTES: Final = 32
DIGEST_CHARACTERS: Final = 44

Values = list[bytes | None]


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


FIELDS: Final = tuple(one.name for one in fields(Said))
NAMES: Final = (b"hmac-sha256", *(one.replace("_", "-").encode() for one in FIELDS[1:]))
"""The headers of `Said`, named as its fields are but for the signature."""
HMAC, SHOP, TOPIC = map(FIELDS.index, ("signature", "shop_domain", "topic"))
SINGLE: Final = (HMAC, SHOP, TOPIC)
"""A second line of one of these makes a request mean two things."""
NOTHING: Final = Said(*[None] * len(FIELDS))


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
        found: list[Values | None] = [None] * self._families
        place_of = self._places.get
        for name, value in headers:
            place = place_of(name) or place_of(name.lower())
            if place is None:
                continue
            family, field = place
            values = found[family]
            if values is None:
                values = found[family] = [None] * len(NAMES)
            if values[field] is None:
                values[field] = value.strip()
            elif field in SINGLE:
                raise HeadersDisagree(f"{NAMES[field].decode()} is given twice")
        return _chosen([values for values in found if values is not None])


def _chosen(found: Sequence[Values]) -> Said:
    if len(found) > 1:
        if len({values[HMAC] for values in found if values[HMAC] is not None}) > 1:
            raise HeadersDisagree("two families carry different signatures")
        shops = {shop.lower() for values in found if (shop := values[SHOP]) is not None}
        if len(shops) > 1:
            raise HeadersDisagree("two families name different shops")
    for values in found:
        if values[HMAC] is not None:
            return Said(*values)
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
