"""What a domain of a storefront looks like: a name of the public web, and nothing else."""

import hashlib
import re
from typing import Final

from tolsey.actors.refusals import Unprocessable

LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TOP: Final = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{2,59}")
SPECIAL: Final = frozenset({"localhost", "local", "internal", "invalid", "onion", "arpa", "lan"})
"""Names that no public resolver answers for (RFC 6761, RFC 8375 and their like)."""
MOST_CHARACTERS: Final = 253


def domain_named(text: str) -> str | None:
    """Name the domain in a text, also one written as an address; None where it is none.

    `www.` is left away, so that a shop is known by one name. No number is a domain, however it is spelt.
    """
    host = text.strip().lower()
    host = host.removeprefix("https://").removeprefix("http://").split("/")[0]
    host = host.removesuffix(".").removeprefix("www.")
    try:
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError:
        return None
    labels = host.split(".")
    if len(host) > MOST_CHARACTERS or len(labels) < 2:  # noqa: PLR2004 - a name and what it is under
        return None
    if TOP.fullmatch(labels[-1]) is None or labels[-1] in SPECIAL:
        return None
    return host if all(LABEL.fullmatch(one) for one in labels) else None


def required_domain(text: str) -> str:
    """Name the domain in a text. Raises Unprocessable."""
    found = domain_named(text)
    if found is None:
        raise Unprocessable(
            "This is not a valid domain. Enter a storefront's domain, for example"
            " shop.example.com.",
            code="invalid_domain",
        )
    return found


def hash_of(domain: str) -> bytes:
    """Hash a domain, as its tombstone is known by."""
    return hashlib.sha256(domain.encode()).digest()
