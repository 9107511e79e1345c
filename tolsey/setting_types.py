"""What a setting may be: an address, a key, words with commas; each says what is wrong with another."""

import base64
import binascii
import ipaddress
import re
from email.utils import parseaddr
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ValidationInfo
from pydantic_settings import NoDecode

ACTOR_KINDS = frozenset({"store", "organization", "listing", "storefront", "job"})
SUBDOMAINS = frozenset({"mcp", "api", "cdn", "hooks", "status", "docs", "preview"})
KEY_BYTES = 32
KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
PRICE_ID = re.compile(r"[^\s,]+")
PRICE_SETTINGS = "payments_price_"
MAIL_ADDRESS = re.compile(r"[^@\s<>\"]{1,64}@[^@\s<>\"]+")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK: tuple[Network, ...] = (
    ipaddress.IPv4Network("127.0.0.0/8"),
    ipaddress.IPv6Network("::1/128"),
)


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address can only be this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https address")
    if parts.username or parts.query or parts.fragment or (parts.port == 0):
        raise ValueError("must be an address without user, query or fragment")
    return text.rstrip("/")


def _origin(text: str) -> str:
    address = _web_address(text)
    if urlsplit(address).path:
        raise ValueError("must be an address without a path")
    return address.lower()


def _mail_server(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or parts.port == 0 or parts.path.strip("/") or parts.query:
        raise ValueError("must be like smtp://user:password@host:port")
    return text


def _bucket_address(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or parts.username or parts.port or parts.query or parts.fragment:
        raise ValueError("must be like s3://bucket/prefix; keys go into the provider's variables")
    return text.rstrip("/")


def _mail_sender(text: str) -> str:
    _, address = parseaddr(text)
    if not MAIL_ADDRESS.fullmatch(address):
        raise ValueError("must be like: Shop keepers <no-reply@example.com>")
    return text


def _template(text: str) -> str:
    _web_address(text.replace("{shop}", "shop.example"))
    if text.count("{shop}") != 1:
        raise ValueError("must contain {shop} once")
    return text.rstrip("/")


def scheme(*allowed: str) -> Any:
    """Take only addresses that begin with one of these schemes."""

    def check(text: str) -> str:
        if urlsplit(text).scheme not in allowed:
            raise ValueError(f"must begin with {' or '.join(f'{name}://' for name in allowed)}")
        return text

    return AfterValidator(check)


def at_least(characters: int) -> Any:
    """Take only texts of so many characters, or more."""

    def check(text: str) -> str:
        if len(text) < characters:
            raise ValueError(f"must have {characters} characters or more")
        return text

    return AfterValidator(check)


def _keyring(text: str) -> str:
    parse_keyring(text)
    return text


def parse_keyring(text: str) -> dict[str, bytes]:
    """Read `keyId:base64url32,...` into keys by id, in order; a ValueError says what is wrong."""
    keys: dict[str, bytes] = {}
    for entry in text.split(","):
        key_id, _, encoded = entry.strip().partition(":")
        if not KEY_ID.fullmatch(key_id) or key_id in keys:
            raise ValueError("must name each key once, with letters, digits, _ or -")
        try:
            key = base64.b64decode(
                encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True
            )
        except binascii.Error as error:
            raise ValueError("must hold base64url keys") from error
        if len(key) != KEY_BYTES:
            raise ValueError(f"must hold keys of {KEY_BYTES} bytes")
        keys[key_id] = key
    return keys


def _words(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(word for part in value.split(",") if (word := part.strip()))
    return value


def _parse_price_ids(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    ids = tuple(part.strip() for part in value.split(","))
    # An empty part or a forgotten comma would leave a price unknown, and its payments unapplied.
    if any(not PRICE_ID.fullmatch(id) for id in ids):
        raise ValueError("must hold price ids separated by commas, without an empty part")
    return ids


def _check_price_ids_are_unique(ids: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    # A price listed for two offers would grant a plan that was not paid for (rules/plans#prices).
    if len(set(ids)) < len(ids):
        raise ValueError("names a price twice")
    for name, others in info.data.items():
        if name.startswith(PRICE_SETTINGS) and not set(ids).isdisjoint(others):
            raise ValueError(f"names a price that {name.upper()} names too")
    return ids


def _known_subdomains(names: frozenset[str]) -> frozenset[str]:
    if names - SUBDOMAINS:
        raise ValueError(f"must be of {', '.join(sorted(SUBDOMAINS))}")
    return names


def _known_kinds(names: frozenset[str]) -> frozenset[str]:
    if unknown := names - ACTOR_KINDS:
        raise ValueError(f"no kind of actor is named {', '.join(sorted(unknown))}")
    return names


Secret: TypeAlias = str
"""A value that no log, page or repr may hold."""
WebAddress: TypeAlias = Annotated[str, AfterValidator(_web_address)]
Origin: TypeAlias = Annotated[str, AfterValidator(_origin)]
ShopAddress: TypeAlias = Annotated[str, AfterValidator(_template)]
"""An address with a place for a shop's domain."""
Keyring: TypeAlias = Annotated[Secret, AfterValidator(_keyring)]
MailServerAddress: TypeAlias = Annotated[
    Secret, scheme("smtp", "smtps"), AfterValidator(_mail_server)
]
MailSender: TypeAlias = Annotated[str, AfterValidator(_mail_sender)]
BucketAddress: TypeAlias = Annotated[str, scheme("s3"), AfterValidator(_bucket_address)]
Words: TypeAlias = Annotated[frozenset[str], NoDecode, BeforeValidator(_words)]
Subdomains: TypeAlias = Annotated[Words, AfterValidator(_known_subdomains)]
ActorKinds: TypeAlias = Annotated[Words, AfterValidator(_known_kinds)]
PriceIds: TypeAlias = Annotated[
    tuple[str, ...],
    NoDecode,
    BeforeValidator(_parse_price_ids),
    AfterValidator(_check_price_ids_are_unique),
]
"""Prices of one offer at the payment processor; no two settings share one."""
Networks: TypeAlias = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_words)]
