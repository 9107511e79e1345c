from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.golden.cases import BESIDE
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.server import listening

SHOP = "demo.myshopify.com"
NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
SHARED = BESIDE / "commerce"


@dataclass
class Receiver:
    """An address that keeps every delivery and answers as it is told."""

    uri: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    answer: int = 200

    def topics(self) -> list[str]:
        return [headers["x-shopify-topic"] for headers, _ in self.got]

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.got.append((headers, body))
        status = self.answers.pop(0) if self.answers else self.answer
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@dataclass
class App:
    """The app's client: it holds a token and asks documents."""

    platform: Platform
    client: httpx.AsyncClient
    shop: str = SHOP
    token: str = ""

    async def grant(self, accept: str = "application/json", **form: str) -> httpx.Response:
        asked = {
            "grant_type": "client_credentials",
            "client_id": "sandbox-client",
            "client_secret": "sandbox-secret",
            **form,
        }
        answer = await self.client.post(
            f"/{self.shop}/admin/oauth/access_token", data=asked, headers={"accept": accept}
        )
        if answer.status_code == 200:
            self.token = answer.json()["access_token"]
        return answer

    async def post(self, query: str, /, **variables: Any) -> httpx.Response:
        return await self.client.post(
            f"/{self.shop}/admin/api/2026-07/graphql.json",
            json={"query": query, "variables": variables},
            headers={"X-Shopify-Access-Token": self.token},
        )

    async def ask(self, query: str, /, **variables: Any) -> Any:
        answer = (await self.post(query, **variables)).json()
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    async def subscribe(self, topic: str, uri: str) -> dict[str, Any]:
        data = await self.ask(
            "mutation($topic: WebhookSubscriptionTopic!, $sub: WebhookSubscriptionInput!) {"
            " webhookSubscriptionCreate(topic: $topic, webhookSubscription: $sub) {"
            " webhookSubscription { id topic uri } userErrors { field message } } }",
            topic=topic,
            sub={"uri": uri},
        )
        made: dict[str, Any] = data["webhookSubscriptionCreate"]
        return made


@asynccontextmanager
async def connected(platform: Platform) -> AsyncIterator[App]:
    async with platform.serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        app = App(platform, client)
        await app.grant()
        yield app


@pytest.fixture
def platform() -> Platform:
    platform = Platform(now=NOW, frozen_clock=True)
    orders = make_history(orders=600, ending=NOW)
    platform.add_shop(ShopSpec(domain=SHOP, orders=orders))
    return platform


@pytest.fixture
async def app(platform: Platform) -> AsyncIterator[App]:
    async with connected(platform) as app:
        yield app


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with listening(receiver) as port:
        receiver.uri = f"http://127.0.0.1:{port}/hooks"
        yield receiver


@pytest.fixture
def published() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the published samples are not here")
    return SHARED
