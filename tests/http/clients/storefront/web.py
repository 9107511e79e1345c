"""Scanners for these tests, and the storefronts they look at."""

from typing import Any

from tests.http.people import NOON
from tolsey.actors.storefront.observed import Observation, Validators
from tolsey.http.clients.storefront.providers import Providers
from tolsey.http.clients.storefront.scanner import WebScanner
from tolsey.http.clients.storefront.visit import Manners
from tolsey.sandbox.storefronts import Storefront, Storefronts

SHOP = "shop.example"
HASTE = Manners(pace_seconds=0)
"""No pause between requests, and every bound as it is in service."""


def scanner(via: str | None = None, manners: Manners = HASTE, **given: Any) -> WebScanner:
    unasked = Providers({}, lambda: NOON)
    options: dict[str, Any] = {"providers": unasked, "clock": lambda: NOON, **given}
    return WebScanner(agent="tolsey/1.0 (+https://t.example)", manners=manners, via=via, **options)


async def looked(
    shop: Storefront,
    manners: Manners = HASTE,
    *,
    is_deep: bool = True,
    known: Validators | None = None,
) -> Observation:
    """Have a shop scanned over HTTP."""
    async with Storefronts(shop).serve() as url:
        return await scanner(url, manners).scan(shop.domain, is_deep=is_deep, known=known)
