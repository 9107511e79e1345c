"""A service with listings on a real port, a page of another site beside it, and a real browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Any

import anyio
import httpx
import pytest
import redis

from tests.conftest import emptied
from tests.databases import Servers, copied
from tests.http.payments.market import catalogue
from tests.http.people import Clock, settings_of
from tests.journeys.conftest import SECRET, SHOP, Seller, free_port, sign_up
from tests.pages.accessible import axe_source
from tests.pages.chromium import NAMES, OTHER_SITE, Browser, Page, find_chromium, launched
from tests.timing import until
from tolsey.http.clients.payments.client import make_client
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor
from tolsey.server import serve_app
from tolsey.service import Running, running
from tolsey.settings import Settings

SELL = "/api/sell/listings"
WEBHOOK_SECRET = "whsec_pages"


@dataclass
class OtherSite:
    """A site of someone else that shows what a test puts on it."""

    url: str
    body: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (event := await receive())["type"] != "lifespan.shutdown":
                await send({"type": event["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        head = '<!doctype html><link rel="icon" href="data:,"><body style="background:#f3f4f6">'
        headers = [(b"content-type", b"text/html; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": (head + self.body).encode()})

    def frame(self, url: str, *, widths: tuple[int, ...] = (360,)) -> None:
        """Frame a page, once in each width."""
        self.body = "".join(
            f'<iframe src="{escape(url)}" width="{width}" height="280" style="border:0"></iframe>'
            for width in widths
        )


@dataclass
class Market:
    """The service as its visitors reach it, with a verified listing and one that is not."""

    url: str
    clock: Clock
    seller: httpx.AsyncClient
    verified: dict[str, Any] = field(default_factory=dict)
    unverified: dict[str, Any] = field(default_factory=dict)

    def address(self, tail: str, *, verified: bool = True) -> str:
        listing = self.verified if verified else self.unverified
        return f"{self.url}/api/public/listings/{listing['slug']}{tail}"

    async def entitle(self, title: str) -> None:
        """Give the verified listing another title."""
        path = f"{SELL}/{self.verified['id']}"
        answer = await self.seller.patch(path, json={"title": title})
        assert answer.status_code == 200, answer.text

    async def proof(self) -> dict[str, Any]:
        answer = await self.seller.get(self.address("/verification"))
        found: dict[str, Any] = answer.json()
        return found


@dataclass
class ServedSite:
    """The service as people with a browser reach it."""

    url: str
    clock: Clock
    running: Running


@asynccontextmanager
async def served(settings: Settings, port: int) -> AsyncIterator[ServedSite]:
    """Run the whole service on a port of this machine."""
    clock = Clock(datetime.now(UTC))
    async with (
        running(settings, clock=clock, timers=False, poll_seconds=0.1) as live,
        anyio.create_task_group() as tasks,
    ):
        stop, ready = anyio.Event(), anyio.Event()
        serve = partial(serve_app, ready=ready.set)
        tasks.start_soon(serve, live.app, "127.0.0.1", port, stop)
        await ready.wait()
        yield ServedSite(settings.base_url, clock, live)
        stop.set()


@pytest.fixture
async def live_site(database_url: str, redis_url: str) -> AsyncIterator[ServedSite]:
    port = free_port()
    settings = settings_of(
        base_url=f"http://127.0.0.1:{port}", database_url=database_url, redis_url=redis_url
    )
    async with served(settings, port) as opened:
        yield opened


@dataclass
class Till(ServedSite):
    """The service with a payment processor beside it, whose pages a browser can pay on."""

    processor: Processor

    def made(self, kind: str) -> list[dict[str, Any]]:
        """List what there is of a kind at the processor, in the order it was made."""
        return list(self.processor.platform.books.each(kind))


@pytest.fixture
async def till(database_url: str, redis_url: str) -> AsyncIterator[Till]:
    port, processor = free_port(), Processor()
    url = f"http://127.0.0.1:{port}"
    async with processor.serve() as payments_url:
        client = make_client(SECRET_KEY, payments_url)
        prices = await catalogue(client)
        await client.close()
        processor.open_endpoint(f"{url}/api/webhooks/payments", WEBHOOK_SECRET)
        settings = settings_of(
            base_url=url,
            database_url=database_url,
            redis_url=redis_url,
            payments_secret_key=SECRET_KEY,
            payments_webhook_secret=WEBHOOK_SECRET,
            payments_api_base=payments_url,
            **{name.lower(): id for name, id in prices.items()},
        )
        async with served(settings, port) as opened:
            yield Till(opened.url, opened.clock, opened.running, processor)


@dataclass
class Bazaar(ServedSite):
    """The service with a shop of the commerce platform beside it."""

    platform: Platform


@pytest.fixture
async def bazaar(database_url: str, redis_url: str) -> AsyncIterator[Bazaar]:
    port, platform = free_port(), Platform()
    history = make_history(seed=3, days=60, orders=120)
    platform.add_shop(
        ShopSpec(domain=SHOP, client_id="client-1", client_secret=SECRET, orders=history)
    )
    async with platform.serve():
        settings = settings_of(
            base_url=f"http://127.0.0.1:{port}",
            database_url=database_url,
            redis_url=redis_url,
            commerce_url_template=platform.url_template,
        )
        async with served(settings, port) as opened:
            yield Bazaar(opened.url, opened.clock, opened.running, platform)


@pytest.fixture
async def seller(bazaar: Bazaar) -> AsyncIterator[Seller]:
    """Someone who sells there, by the routes of programs."""
    async with httpx.AsyncClient(base_url=bazaar.url, headers={"Origin": bazaar.url}) as client:
        yield await sign_up(client)


@pytest.fixture
async def visitor(live_site: ServedSite) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without a picture: it keeps cookies, says its origin, and follows nothing."""
    async with httpx.AsyncClient(
        base_url=live_site.url, headers={"Origin": live_site.url}
    ) as client:
        yield client


@pytest.fixture(scope="module")
def chromium_path() -> str:
    """Name the browser, or skip the tests of a machine without one."""
    path = find_chromium()
    if path is None:
        pytest.skip(f"no Chromium that starts is on the PATH (looked for {', '.join(NAMES)})")
    return path


@pytest.fixture(scope="module")
async def chromium(
    chromium_path: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    async with launched(chromium_path, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the text of axe-core, or skip the tests of a machine that cannot have it."""
    source = axe_source(tmp_path_factory.mktemp("axe"))
    if source is None:
        pytest.skip("axe-core is not to be had: no npm, or no registry")
    return source


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    async with chromium.page() as opened:
        yield opened


@pytest.fixture(scope="module")
async def other_site() -> AsyncIterator[OtherSite]:
    port, stop = free_port(), anyio.Event()
    site = OtherSite(f"http://{OTHER_SITE}:{port}")
    async with anyio.create_task_group() as tasks:
        ready = anyio.Event()
        serve = partial(serve_app, ready=ready.set)
        tasks.start_soon(serve, site, "127.0.0.1", port, stop)
        await ready.wait()
        yield site
        stop.set()


@pytest.fixture(scope="module")
async def market(
    chromium_path: str, servers: Servers, template: str, redis_client: redis.Redis
) -> AsyncIterator[Market]:
    """Serve; the browser is asked for first, so that no one waits for a service nobody visits."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    clock = Clock(datetime.now(UTC))
    platform = Platform()
    history = make_history(seed=3, days=60, orders=120)
    platform.add_shop(
        ShopSpec(domain=SHOP, client_id="client-1", client_secret=SECRET, orders=history)
    )
    async with platform.serve():
        async for database_url in copied(servers, template):
            settings = settings_of(
                base_url=url,
                database_url=database_url,
                redis_url=emptied(servers, redis_client),
                commerce_url_template=platform.url_template,
            )
            async with (
                running(settings, clock=clock, timers=False, poll_seconds=0.1) as live,
                anyio.create_task_group() as tasks,
                httpx.AsyncClient(base_url=url, headers={"Origin": url}) as client,
            ):
                stop, ready = anyio.Event(), anyio.Event()
                serve = partial(serve_app, ready=ready.set)
                tasks.start_soon(serve, live.app, "127.0.0.1", port, stop)
                await ready.wait()
                yield await stocked(Market(url, clock, client))
                stop.set()


async def stocked(market: Market) -> Market:
    seller = await sign_up(market.seller)
    for title in ("Corner Ceramics", "Hill Street Prints"):
        made = await seller.post(
            SELL,
            organizationId=seller.organization_id,
            title=title,
            askingPrice={"amount": 250_000_00, "currency": "USD"},
        )
        assert made.status_code == 201, made.text
        published = await seller.post(f"{SELL}/{made.json()['id']}/publish")
        assert published.status_code == 200, published.text
        market.verified, market.unverified = market.unverified, made.json()
    path = f"{SELL}/{market.verified['id']}"
    begun = await seller.post(
        f"{path}/verify/commerce", shopDomain=SHOP, clientId="client-1", clientSecret=SECRET
    )
    assert begun.status_code == 200, begun.text

    async def is_done() -> bool:
        return bool((await market.proof())["state"] != "pending")

    await until(is_done)
    assert (await market.proof())["state"] == "verified"
    return market
