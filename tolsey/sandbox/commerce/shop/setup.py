"""What a shop is set up with: location, markets, shipping, files, policies, theme and password.

Objects are mappings by the fields of the schema, so that what a launch writes is what it reads again.
"""

from dataclasses import dataclass, field
from typing import Any

from tolsey.sandbox.commerce.shop.files import StoredFile
from tolsey.sandbox.commerce.shop.products import LOCATION_ID

ONLINE_STORE = "Online Store"


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
    return [
        {
            "id": "gid://shopify/OnlineStoreTheme/1",
            "name": "Horizon",
            "role": "MAIN",
            "processing": False,
            "processingFailed": False,
        }
    ]


def _menus() -> list[dict[str, Any]]:
    """Make the menus that every shop has from the start."""
    menus = {
        "main-menu": ("Main menu", {"Home": "FRONTPAGE", "Catalog": "CATALOG"}),
        "footer": ("Footer menu", {"Search": "SEARCH"}),
    }
    return [
        {
            "id": f"gid://shopify/Menu/{place}",
            "handle": handle,
            "title": title,
            "items": [
                {"title": one, "type": kind, "resourceId": None, "url": "/"}
                for one, kind in items.items()
            ],
        }
        for place, (handle, (title, items)) in enumerate(menus.items(), 1)
    ]


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
    is_slow_with_themes: bool = True
    """Whether a theme that was made is processed no sooner than the first look at it."""
    has_tls: bool = True
    payments_activated: bool = False
    charges_tax: bool = True
    has_pixel_extension: bool = False
    """An app made in the browser ships none."""
    things: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What else is kept, by its type."""

    def __post_init__(self) -> None:
        """Keep what a new shop has beside everything else of its type."""
        self.things |= {
            "Menu": _menus(),
            "OnlineStoreTheme": self.themes,
            "ShopPolicy": self.policies,
        }

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Give the things of a type."""
        return self.things.setdefault(kind, [])
