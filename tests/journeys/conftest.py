"""A whole service and a whole platform, as a day in the life of their users needs them."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http.people import KEYRING, PASSWORD, settings_of
from tests.journeys.neighbours import shared
from tests.timing import LEASE_SECONDS, PATIENCE_SECONDS, TestTime, beat_often, block_until
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.people import administrators

CRON_SECRET = "c" * 40
SHOP = "demo.myshopify.com"
SECRET = "shpss_0123456789abcdef0123456789abcdef"
EVENTS = "/api/webhooks/commerce/events"
PLUS_RATE = 1000.0
"""Points a second of a shop on the platform's Plus plan: nothing here waits to be let in again."""


@dataclass
class Seller:
    """Someone with a browser, an organization and a store."""

    browser: httpx.AsyncClient
    organization_id: str
    store_id: str

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.browser.post(path, json=body)

    async def connect(self, shop: str = SHOP, secret: str = SECRET) -> httpx.Response:
        return await self.post(
            "/api/integrations/commerce/custom-app",
            storeId=self.store_id,
            shopDomain=shop,
            clientId="client-1",
            clientSecret=secret,
        )


def order_body(order_id: int, **changed: Any) -> bytes:
    body = {
        "id": order_id,
        "name": f"#{order_id}",
        "currency": "USD",
        "total_price": "42.00",
        "current_total_price": "42.00",
        "financial_status": "paid",
        "fulfillment_status": None,
        "test": False,
        "source_name": "web",
        "created_at": "2026-07-01T10:00:00-04:00",
        "updated_at": "2026-07-01T10:00:00-04:00",
        "processed_at": "2026-07-01T10:00:00-04:00",
        "cancelled_at": None,
        "email": "buyer@example.com",
        "customer": {"id": 7, "email": "buyer@example.com"},
        "tags": "",
        "note_attributes": [],
        **changed,
    }
    return json.dumps(body).encode()


def signed(
    body: bytes,
    topic: str = "orders/create",
    *,
    secret: str = SECRET,
    shop: str = SHOP,
    delivery_id: str | None = None,
    **more: str,
) -> dict[str, str]:
    digest = hmac.digest(secret.encode(), body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "X-Shopify-Topic": topic,
        "X-Shopify-Hmac-Sha256": base64.b64encode(digest).decode(),
        "X-Shopify-Shop-Domain": shop,
        "X-Shopify-Webhook-Id": delivery_id or str(uuid.uuid4()),
        "X-Shopify-Event-Id": str(uuid.uuid4()),
        "X-Shopify-Triggered-At": datetime.now(UTC).isoformat(),
        "X-Shopify-API-Version": "2026-07",
        **more,
    }


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    made = Platform()
    made.add_shop(
        ShopSpec(
            domain=SHOP,
            client_id="client-1",
            client_secret=SECRET,
            orders=make_history(seed=3, days=60, orders=120),
            restore_rate=PLUS_RATE,
        )
    )
    async with made.serve():
        yield made


@pytest.fixture
def settings(database_url: str, redis_url: str, platform: Platform, tmp_path: Path) -> Settings:
    return settings_of(
        data_dir=tmp_path / "data",
        database_url=database_url,
        redis_url=redis_url,
        cron_secret=CRON_SECRET,
        commerce_url_template=platform.url_template,
        payments_api_base="http://127.0.0.1:9",  # nobody is there: nothing leaves this machine
    )


@pytest.fixture
async def live(settings: Settings) -> AsyncIterator[Running]:
    async with running(settings, timers=False, poll_seconds=0.1) as service:
        yield service


@pytest.fixture
async def browser(live: Running, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(live.app)
    async with httpx.AsyncClient(
        transport=transport, base_url=settings.base_url, headers={"Origin": settings.base_url}
    ) as client:
        yield client


SignUp = Callable[[httpx.AsyncClient, str], Awaitable[Seller]]


async def sign_up(browser: httpx.AsyncClient, email: str = "seller@example.com") -> Seller:
    made = await browser.post(
        "/api/auth/signup",
        json={"email": email, "password": PASSWORD, "organizationName": "A company"},
    )
    assert made.status_code == 201, made.text
    organization_id = made.json()["organization"]["id"]
    store = await browser.post(
        "/api/stores", json={"organizationId": organization_id, "name": "A store"}
    )
    assert store.status_code == 201, store.text
    return Seller(browser, organization_id, store.json()["id"])


@pytest.fixture
async def seller(browser: httpx.AsyncClient) -> Seller:
    return await sign_up(browser)


@pytest.fixture
async def operator(live: Running, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    email, password = "operator@example.com", "correct horse battery"
    await administrators.create_administrator(live.service.database, email, password)
    transport = httpx.ASGITransport(live.app)
    async with httpx.AsyncClient(
        transport=transport, base_url=settings.base_url, headers={"Origin": settings.base_url}
    ) as client:
        answer = await client.post("/api/auth/login", json={"email": email, "password": password})
        assert answer.status_code == 200, answer.text
        yield client


@dataclass
class ServiceProcess:
    """`tolsey serve` as an operator starts it, on a port of its own."""

    environment: dict[str, str]
    log: Path
    port: int = field(default_factory=lambda: free_port())  # noqa: PLW0108 - defined below
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tolsey", "serve", "--port", str(self.port)],
                env={**os.environ, **self.environment, "BASE_URL": self.url},
                stdout=log,
                stderr=log,
            )
        block_until(self._serves)

    def _serves(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            answer = httpx.get(f"{self.url}/api/health", timeout=PATIENCE_SECONDS)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def terminate(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Kill it if it still runs, and print the end of its log: pytest shows that of a test that failed."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self.log.exists():
            sys.stdout.write(self.log.read_text()[-5000:])


def free_port() -> int:
    """Find a port below those that the kernel gives to connections: one could take it before it is served."""
    while True:
        number = 11_000 + secrets.randbelow(21_000)  # browsers refuse 10080
        with suppress(OSError), socket.create_server(("127.0.0.1", number)):
            return number


@pytest.fixture
def process(settings: Settings, tmp_path: Path) -> Iterator[ServiceProcess]:
    assert settings.database_url is not None
    assert settings.redis_url is not None
    made = ServiceProcess(
        {
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": settings.redis_url,
            "ENCRYPTION_KEYS": KEYRING,
            "LEASE_SECONDS": str(LEASE_SECONDS),
            "CRON_SECRET": CRON_SECRET,
            "COMMERCE_URL_TEMPLATE": settings.commerce_url_template,
        },
        tmp_path / "service.log",
    )
    yield made
    made.end()


@pytest.fixture
def brisk(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of processes that see soon what the others do, and outlive every pause."""
    beat_often(monkeypatch)
    return settings.model_copy(update={"lease_seconds": LEASE_SECONDS})


@pytest.fixture
async def pair(brisk: Settings) -> AsyncIterator[tuple[Running, Running]]:
    """Run two processes that have shared the slots."""
    start = partial(running, brisk, timers=False, poll_seconds=0.1, time=TestTime(runs=True))
    async with start() as one, start() as other:
        await shared(one, other)
        yield one, other
