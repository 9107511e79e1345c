"""A service with listings on a real port, a page of another site beside it, and a real browser."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Any

import anyio
import httpx
import pytest

from tests.conftest import Servers, copied
from tests.http.people import Clock, settings_of
from tests.journeys.conftest import SECRET, SHOP, free_port, sign_up
from tests.pages.chromium import NAMES, OTHER_SITE, Browser, Page, find_chromium, launched
from tolsey.sandbox.history import make_history
from tolsey.sandbox.platform import Platform
from tolsey.sandbox.shops import ShopSpec
from tolsey.server import serve_app
from tolsey.service import running

SELL = "/api/sell/listings"


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
async def market(chromium_path: str, servers: Servers, template: str) -> AsyncIterator[Market]:
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
                redis_url=servers.redis_url,
                commerce_url_template=platform.url_template,
            )
            async with (
                running(settings, clock=clock, timers=False, poll_seconds=0.1) as house,
                anyio.create_task_group() as tasks,
                httpx.AsyncClient(base_url=url, headers={"Origin": url}) as client,
            ):
                stop, ready = anyio.Event(), anyio.Event()
                serve = partial(serve_app, ready=ready.set)
                tasks.start_soon(serve, house.app, "127.0.0.1", port, stop)
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
    with anyio.fail_after(20):
        while (await market.proof())["state"] == "pending":
            await anyio.sleep(0.02)
    assert (await market.proof())["state"] == "verified"
    return market
