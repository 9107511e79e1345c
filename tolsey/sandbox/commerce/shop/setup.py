"""What a shop is set up with: location, markets, shipping, files, policies, theme and password.

Objects are mappings by the fields of the schema, so that what a launch writes is what it reads again.
"""

from dataclasses import dataclass, field
from typing import Any

from tolsey.sandbox.commerce.shop.products import LOCATION_ID

ONLINE_STORE = "Online Store"


@dataclass(slots=True)
class StoredFile:
    """A file of the shop."""

    id: int
    filename: str
    alt: str
    content: bytes
    fileStatus: str  # noqa: N815 - the schema's name


@dataclass(slots=True)
class AppCatalog:
    """What a publication publishes."""

    title: str


def _location() -> dict[str, Any]:
    return {
        "id": f"gid://shopify/Location/{LOCATION_ID}",
        "legacyResourceId": str(LOCATION_ID),
        "name": "Main",
        "isActive": True,
        "fulfillsOnlineOrders": True,
        "address": dict.fromkeys(
            ("address1", "address2", "city", "countryCode", "phone", "provinceCode", "zip")
        ),
    }


def _publications() -> list[dict[str, Any]]:
    return [{"id": "gid://shopify/Publication/1", "catalog": AppCatalog(ONLINE_STORE)}]


def _themes() -> list[dict[str, Any]]:
    return [{"id": "gid://shopify/OnlineStoreTheme/1", "name": "Horizon"}]


@dataclass(slots=True)
class Setup:
    """How far a shop is set up; a new one has a location, a theme, a password and nothing to ship with."""

    location: dict[str, Any] = field(default_factory=_location)
    publications: list[dict[str, Any]] = field(default_factory=_publications)
    themes: list[dict[str, Any]] = field(default_factory=_themes)
    markets: list[dict[str, Any]] = field(default_factory=list)
    zones: list[dict[str, Any]] = field(default_factory=list)
    policies: list[dict[str, Any]] = field(default_factory=list)
    files: dict[int, StoredFile] = field(default_factory=dict)
    staged: dict[str, bytes] = field(default_factory=dict)
    """What was uploaded and is no file yet, by its key; empty until the bytes have come."""
    address: dict[str, str] = field(default_factory=dict)
    has_password: bool = True
    has_tls: bool = True
    payments_activated: bool = False
