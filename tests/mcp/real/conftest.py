from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.people import settings_of
from tests.journeys.conftest import free_port
from tests.mcp.conformance import suite
from tests.mcp.real.served_stores import ServedStores, settled
from tests.pages.conftest import ServedSite, served


@pytest.fixture
async def live_site(database_url: str, redis_url: str) -> AsyncIterator[ServedSite]:
    port = free_port()
    settings = settings_of(
        base_url=f"http://127.0.0.1:{port}", database_url=database_url, redis_url=redis_url
    )
    async with served(settings, port) as opened:
        yield opened


@pytest.fixture
async def two_keepers(live_site: ServedSite) -> AsyncIterator[ServedStores]:
    origin = {"Origin": live_site.url}
    async with (
        httpx.AsyncClient(base_url=live_site.url, headers=origin) as anns,
        httpx.AsyncClient(base_url=live_site.url, headers=origin) as eves,
    ):
        ann = await settled(live_site, anns, "ann@example.com")
        eve = await settled(live_site, eves, "eve@example.com")
        yield ServedStores(live_site, ann, eve)


@pytest.fixture(scope="session")
def node() -> str:
    """Name the Node.js of the conformance suite, or skip where it was never installed."""
    if not suite.is_installed():
        pytest.skip("the conformance suite is not installed (`make conformance` does it)")
    return str(suite.NODE)
