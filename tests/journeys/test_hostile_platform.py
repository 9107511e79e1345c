"""Shops that lie, and sellers who crowd."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.journeys.conftest import EVENTS, SECRET, SHOP, Seller, signed
from tests.journeys.strangers import LISTINGS, listing_of, quiet
from tolsey.actors.ports import PlatformUnreachable, Shop
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.messages import store
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.sandbox.commerce.course.faults import Fault
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running
from tolsey.settings import Settings


class Canary:
    """A server on loopback, beside the platform, that nobody may call."""

    def __init__(self) -> None:
        self.calls = 0
        self.port = 0

    async def _called(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        writer.close()

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._called, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    made = Canary()
    async with await made.listen():
        yield made


def answer_next(platform: Platform, data: dict[str, Any], on: str = "graphql") -> None:
    """Let the platform give an answer that a test made up."""
    body = json.dumps({"data": data}).encode()
    platform.faults.waiting.setdefault(on, deque()).append(Fault("answer", 200, body))


def facts(**changed: Any) -> dict[str, Any]:
    """Answer the connect probe."""
    return {
        "shop": {
            "myshopifyDomain": SHOP,
            "name": "A shop",
            "currencyCode": "USD",
            "plan": {"publicDisplayName": "Basic", "partnerDevelopment": False},
            "primaryDomain": {"host": "shop.example"},
            "createdAt": "2020-01-01T00:00:00Z",
            "ianaTimezone": "UTC",
            **changed,
        },
        "currentAppInstallation": {"accessScopes": [{"handle": "read_orders"}]},
    }


# Where calls go


@pytest.mark.parametrize(
    "domain",
    [
        "127.0.0.1",
        "127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "169.254.169.254/latest/meta-data",
        "demo.myshopify.com@127.0.0.1:{port}",
        "demo.myshopify.com.127.0.0.1.nip.io",
        "demo.myshopify.com:{port}",
        "https://demo.myshopify.com:{port}/",
        "demo.myshopify.com\\@127.0.0.1",
        "admin.shopify.com/store/../../127.0.0.1",
        "../demo.myshopify.com",
        "demo.myshopify.com\r\nHost: 127.0.0.1",
        "0x7f000001",
        "[::1]",
        "localhost",
        "demo。myshopify。com",
        "shop.example",
        "unix:/tmp/x",
        "",
    ],
)
async def test_no_spelling_of_a_shop_points_the_service_elsewhere(
    seller: Seller, platform: Platform, canary: Canary, domain: str
) -> None:
    listing = await listing_of(seller)
    spelled = domain.replace("{port}", str(canary.port))
    before = platform.requests
    answers = [
        await seller.connect(spelled),
        await seller.post(
            f"{LISTINGS}/{listing['id']}/verify/commerce",
            shopDomain=spelled,
            clientId="client-1",
            clientSecret=SECRET,
        ),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert (platform.requests, canary.calls) == (before, 0)


@pytest.mark.parametrize(
    "domain", ["127.0.0.1:{port}", "evil.example/", "x.myshopify.com/..", "admin.shopify.com", ""]
)
async def test_a_platform_that_names_another_host_is_not_followed(
    live: Running, seller: Seller, platform: Platform, canary: Canary, domain: str
) -> None:
    answer_next(platform, facts(myshopifyDomain=domain.replace("{port}", str(canary.port))))
    answer = await seller.connect()
    assert (answer.status_code, answer.json()["code"]) == (502, "commerce_unreachable")
    rows = await live.service.database.fetch("SELECT 1 FROM integration_connections")
    assert (rows, canary.calls) == ([], 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_platform_that_sends_us_elsewhere_is_not_followed(
    seller: Seller, platform: Platform, canary: Canary, status: int
) -> None:
    target = f"http://127.0.0.1:{canary.port}/".encode()
    for on in ("token", "graphql"):
        fault = Fault("answer", status, b"", ((b"location", target),))
        platform.faults.waiting.setdefault(on, deque()).append(fault)
        answer = await seller.connect()
        assert answer.status_code == 502
        assert str(canary.port) not in answer.text
    assert canary.calls == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/export.jsonl",
        "https://127.0.0.1:{port}/export.jsonl",
        "https://localhost:{port}/",
        "https://[::1]:{port}/",
        "https://169.254.169.254/latest/meta-data",
        "https://demo.myshopify.com@127.0.0.1:{port}/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
    ],
)
async def test_an_export_that_lies_on_our_own_network_is_not_fetched(
    settings: Settings, platform: Platform, canary: Canary, url: str
) -> None:
    operation = {
        "id": "gid://shopify/BulkOperation/1",
        "status": "COMPLETED",
        "errorCode": None,
        "objectCount": "1",
        "rootObjectCount": "1",
        "url": url.replace("{port}", str(canary.port)),
        "partialDataUrl": None,
    }
    started = {"bulkOperationRunQuery": {"bulkOperation": operation, "userErrors": []}}
    now = datetime.now(UTC)
    async with ShopifyAdmin(settings.commerce_url_template, bulk_above=0) as admin:
        grant = await admin.exchange(SHOP, "client-1", SECRET)
        for data in ({"ordersCount": {"count": 9, "precision": "EXACT"}}, started):
            answer_next(platform, data)
        answer_next(platform, {"bulkOperation": operation})
        found = admin.orders(Shop(SHOP, grant.access_token), now - timedelta(days=30), now)
        with pytest.raises(PlatformUnreachable):
            await anext(found)
    assert canary.calls == 0


# One at a time


async def let_the_token_age(live: Running, store_id: str) -> None:
    """Leave the store's token five minutes, as a day's work does."""
    await quiet(live)
    await live.service.database.execute(
        "UPDATE integration_connections SET token_expires_at = now() + interval '5 minutes'"
    )
    await live.service.runtime.admin.passivate(store(store_id))


async def test_twenty_who_need_a_new_token_at_once_cost_one_grant(
    live: Running, seller: Seller, platform: Platform
) -> None:
    await seller.connect()
    await let_the_token_age(live, seller.store_id)
    before = platform.grants
    edited = json.dumps({"order_edit": {"id": 1, "order_id": 1}}).encode()
    now = datetime.now(UTC)
    asks = [live.service.runtime.ask(store(seller.store_id), UseToken(now)) for _ in range(20)]
    posts = [
        seller.browser.post(EVENTS, content=edited, headers=signed(edited, "orders/edited"))
        for _ in range(20)
    ]
    tokens, answers = await asyncio.gather(asyncio.gather(*asks), asyncio.gather(*posts))
    await quiet(live)
    assert platform.grants == before + 1
    assert len({token.access_token for token in tokens}) == 1
    assert {answer.status_code for answer in answers} == {200}


async def test_a_refused_renewal_is_asked_for_once_and_keeps_the_grant(
    live: Running, seller: Seller, platform: Platform
) -> None:
    await seller.connect()
    await let_the_token_age(live, seller.store_id)
    query = "SELECT status, access_token, metadata FROM integration_connections"
    kept = await live.service.database.fetchrow(query)
    platform.rotate_secret(SHOP, "shpss_rotated")
    before = platform.grants
    now = datetime.now(UTC)
    asks = [live.service.runtime.ask(store(seller.store_id), UseToken(now)) for _ in range(20)]
    refused = await asyncio.gather(*asks, return_exceptions=True)
    assert {getattr(error, "code", None) for error in refused} == {"token_unavailable"}
    assert platform.grants == before + 1
    path = f"/api/stores/{seller.store_id}/integrations/commerce"
    shown = (await seller.browser.get(path)).json()
    assert (shown["status"], shown["tokenState"]) == ("active", "token_unavailable")
    after = await live.service.database.fetchrow(query)
    assert kept is not None
    assert after is not None
    assert (after["status"], after["access_token"]) == (kept["status"], kept["access_token"])


async def test_twenty_connects_at_once_leave_one_working_connection(
    live: Running, seller: Seller, platform: Platform
) -> None:
    answers = await asyncio.gather(*(seller.connect() for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    await quiet(live)
    rows = await live.service.database.fetch("SELECT status FROM integration_connections")
    assert [row["status"] for row in rows] == ["active"]
    # Nobody listens at this service's address: the platform may have dropped the one that tells of exports.
    assert len(platform.shop(SHOP).subscriptions) in {23, 24}
    token = await live.service.runtime.ask(store(seller.store_id), UseToken(datetime.now(UTC)))
    assert token.shop_domain == SHOP


async def test_connects_are_counted_so_that_no_one_guesses_secrets_through_us(
    seller: Seller, platform: Platform
) -> None:
    answers = [await seller.connect(secret="guess") for _ in range(61)]
    assert [answer.status_code for answer in answers] == [422] * 60 + [429]
    assert platform.grants == 60
