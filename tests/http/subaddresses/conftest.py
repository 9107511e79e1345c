from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.people import settings_of
from tests.http.subaddresses.others import ASSETS, AssetServer
from tolsey.sandbox.server import listening
from tolsey.sandbox.storefronts import Storefront, Storefronts
from tolsey.service import Running, running
from tolsey.setting_types import SUBDOMAINS
from tolsey.settings import Settings

SHOP = "demo.myshopify.com"
HOME = (
    "<html><body><a href='/products/mug'>Mug</a>"
    f'<a href="https://{SHOP}/cart">Cart</a><a href="https://elsewhere.example/">Elsewhere</a>'
    '<img srcset="/a.png 1x, /b.png 2x"></body></html>'
)


@pytest.fixture
async def assets() -> AsyncIterator[AssetServer]:
    server = AssetServer()
    async with listening(server) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


@pytest.fixture
async def storefront() -> Storefront:
    return Storefront(
        SHOP, home=HOME, redirects={"/old": "/new", "/gone": "https://other.example/x"}
    )


@pytest.fixture
async def settings(
    database_url: str, redis_url: str, assets: AssetServer, storefront: Storefront
) -> AsyncIterator[Settings]:
    async with Storefronts(storefront).serve() as url:
        yield settings_of(
            database_url=database_url,
            redis_url=redis_url,
            base_url="https://tolsey.example",
            next_public_live_subdomains=",".join(SUBDOMAINS),
            cdn_origins={ASSETS: f"{assets.url}/bucket"},
            storefront_url=url,
        )


@pytest.fixture
async def live(settings: Settings) -> AsyncIterator[Running]:
    async with running(settings, timers=False, poll_seconds=0.1) as service:
        yield service


@pytest.fixture
async def browser(live: Running, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(live.app)
    origin = {"Origin": settings.base_url}
    async with httpx.AsyncClient(
        transport=transport, base_url=settings.base_url, headers=origin
    ) as client:
        yield client
