"""Redis and PostgreSQL go away and come back: what users see, and that nothing answered is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.campaigns.cluster.link import Link
from tests.databases import Servers
from tests.journeys.conftest import EVENTS, Seller, order_body, sign_up, signed
from tests.timing import LEASE_SECONDS, TestTime, beat_often, until
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage import database


@pytest.fixture
async def links(servers: Servers, settings: Settings) -> AsyncIterator[tuple[Link, Link]]:
    """Stand between the service and its Redis, and between it and its database."""
    assert settings.database_url is not None
    if not servers.embedded:
        pytest.skip("the links lead to the sockets of embedded servers")
    folder = parse_qs(urlsplit(settings.database_url).query)["host"][0]
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(
            Link(Path(urlsplit(servers.redis_url).path)).standing()
        )
        postgres = await stack.enter_async_context(Link(Path(folder) / ".s.PGSQL.5432").standing())
        yield redis, postgres


@pytest.fixture
def time() -> TestTime:
    return TestTime(runs=True)


@pytest.fixture
async def live(
    settings: Settings, links: tuple[Link, Link], time: TestTime, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Running]:
    beat_often(monkeypatch)
    assert settings.database_url is not None
    redis, postgres = links
    behind = urlsplit(settings.database_url)
    address = f"{behind.scheme}://{behind.username}@127.0.0.1:{postgres.port}{behind.path}"
    given = settings.model_copy(
        update={
            "redis_url": f"redis://127.0.0.1:{redis.port}/0",
            "database_url": f"{address}?sslmode=disable",
            "lease_seconds": LEASE_SECONDS,
        }
    )
    async with running(given, timers=False, poll_seconds=0.1, time=time) as service:
        yield service


@pytest.fixture
async def shop(browser: httpx.AsyncClient) -> Seller:
    seller = await sign_up(browser)
    assert (await seller.connect()).status_code == 200
    return seller


async def deliver(seller: Seller, number: int, delivery_id: str | None = None) -> httpx.Response:
    body = order_body(number)
    return await seller.browser.post(
        EVENTS, content=body, headers=signed(body, delivery_id=delivery_id)
    )


async def orders(live: Running) -> int:
    """Count what was delivered: what the shop had before is imported."""
    row = await live.service.database.fetchrow(
        "SELECT count(*) AS n FROM commerce_orders WHERE order_id < 1000"
    )
    return int(row["n"]) if row else 0


async def test_without_redis_a_process_serves_its_stores_until_its_lease_ends_and_then_refuses(
    live: Running, shop: Seller, links: tuple[Link, Link], time: TestTime
) -> None:
    redis, _ = links
    path = f"/api/stores/{shop.store_id}/integrations/commerce"
    assert (await shop.browser.get(path)).status_code == 200
    await redis.cut()
    assert (await shop.browser.get(path)).status_code == 200
    assert (await deliver(shop, 1)).status_code == 200

    time.advance(LEASE_SECONDS)
    refused = await shop.browser.get(path)
    assert refused.status_code == 503
    assert refused.json()["code"] == "shard_unavailable"
    assert int(refused.headers["Retry-After"]) >= 1
    kept = await deliver(shop, 2, "kept-for-later")
    assert kept.status_code in {200, 503}
    assert (await shop.browser.get("/api/health")).status_code == 503
    await redis.heal()

    async def serves() -> bool:
        return (await shop.browser.get(path)).status_code == 200

    await until(serves)
    assert (await deliver(shop, 2, "kept-for-later")).status_code == 200
    await until(lambda: _is(orders(live), 2))


async def test_redis_may_be_emptied_while_orders_come_in(
    live: Running, shop: Seller, links: tuple[Link, Link]
) -> None:
    for number in range(1, 31):
        if number in {10, 20}:
            await live.service.cache.flush()
        assert (await deliver(shop, number)).status_code == 200
    assert await orders(live) == 30


async def test_what_was_answered_while_postgresql_went_away_is_there_when_it_is_back(
    live: Running, shop: Seller, links: tuple[Link, Link]
) -> None:
    _, postgres = links
    answered = []
    for number in range(1, 61):
        if number == 20:
            await postgres.cut()
        if number == 40:
            await postgres.heal()
        answer = await deliver(shop, number, f"delivery-{number}")
        assert answer.status_code in {200, 503}
        if answer.status_code == 200:
            answered.append(number)
    assert len(answered) >= 20

    async def taken() -> bool:
        again = [await deliver(shop, number, f"delivery-{number}") for number in range(1, 61)]
        return all(answer.status_code == 200 for answer in again)

    await until(taken)
    await until(lambda: _is(orders(live), 60))


async def test_a_postgresql_that_hangs_is_said_to_be_away_while_people_still_wait(
    live: Running,
    shop: Seller,
    links: tuple[Link, Link],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "REQUEST_SECONDS", 0.5)
    _, postgres = links
    whose = {"organizationId": shop.organization_id}
    asks = {
        "/api/credits": partial(shop.browser.get, "/api/credits", params=whose),
        "/api/chat": partial(shop.browser.post, "/api/chat", json={"storeId": shop.store_id}),
        "/billing": partial(shop.browser.get, "/billing", params=whose),
        "/api/stores": partial(shop.browser.get, "/api/stores"),
    }
    postgres.hold("up", "down")
    answers = await asyncio.gather(*(ask() for ask in asks.values()))
    for path, answer in zip(asks, answers, strict=True):
        assert answer.status_code == 503, path
        if path.startswith("/api"):
            assert answer.json()["code"] == "storage_unavailable"
    await postgres.heal(loses=True)

    async def serves() -> bool:
        return (await asks["/api/credits"]()).status_code == 200

    await until(serves)


async def test_a_process_whose_commits_hang_says_so(live: Running, shop: Seller) -> None:
    health = partial(shop.browser.get, "/api/health")

    async def degraded() -> bool:
        return (await health()).status_code == 503

    assert not await degraded()
    async with live.service.database.transaction() as tx:
        await tx.execute("SELECT * FROM actors WHERE key = $1 FOR UPDATE", shop.store_id)
        delivering = asyncio.create_task(deliver(shop, 1))
        await until(degraded)
        assert live.service.shard.leased
        assert (await health()).json()["checks"] == {"db": False, "cache": True}
    await delivering

    async def serves() -> bool:
        return not await degraded()

    await until(serves)


async def _is(found: Awaitable[int], expected: int) -> bool:
    return await found == expected
