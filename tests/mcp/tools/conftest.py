from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.http.people import Clock, settings_of
from tests.mcp.tools.two_stores import SHOPS, TwoStores, settle
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import running

ANN, BOB = 1_000_000, 2_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def platform(clock: Clock) -> AsyncIterator[Platform]:
    """Serve the two stores' shops on loopback."""
    made = Platform(now=clock.now, frozen_clock=True)
    for domain in SHOPS.values():
        made.add_shop(ShopSpec(domain=domain, client_id=f"app-{domain}"))
    async with made.serve():
        yield made


@pytest.fixture
def given() -> dict[str, Any]:
    """Give settings beside the usual ones."""
    return {}


@pytest.fixture
async def two_stores(
    database_url: str, redis_url: str, platform: Platform, clock: Clock, given: dict[str, Any]
) -> AsyncIterator[TwoStores]:
    """Run the whole service with two organizations in it."""
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        commerce_url_template=platform.url_template,
        storefront_url="http://127.0.0.1:9",  # nobody is there
        **given,
    )
    async with running(settings, clock=clock, timers=False) as started:
        service = started.service
        ann = await settle(service, "ann", ANN, clock.now)
        bob = await settle(service, "bob", BOB, clock.now)
        yield TwoStores(service, ann, bob, started.app)
