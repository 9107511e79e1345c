"""A person told of through every way in is found nowhere once they are erased."""

import io
import logging
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import pytest
import redis.asyncio
import structlog

from tests.journeys.canaries import pass_time, someone
from tests.journeys.conftest import SECRET, SHOP, Seller, sign_up
from tests.journeys.planting import (
    World,
    account_of,
    agent_of,
    deliveries,
    notes_of_agents,
    words_of_people,
    world,
)
from tests.journeys.strangers import browsing
from tolsey import logs
from tolsey.storage.catalogue import declared
from tolsey.storage.owners import OF_SHOP
from tolsey.storage.records.commerce.compliance import PendingStep

OTHER, OTHER_SECRET = "second.myshopify.com", "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"


@pytest.fixture
async def planted(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    log = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", log)
        logs.configure("debug")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
    shops = {SHOP: SECRET, OTHER: OTHER_SECRET}
    async with world(database_url, redis_url, tmp_path / "data", log, shops) as made:
        yield made
    structlog.reset_defaults()
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, logs.Libraries)]


async def forget_what_expires(world: World) -> None:
    """Let Redis forget what it keeps for a time."""
    client = redis.asyncio.from_url(str(world.live.service.settings.redis_url))
    for key in [key async for key in client.scan_iter()]:
        if await client.ttl(key) > 0:
            await client.delete(key)
    await client.aclose()


async def plant(
    world: World, seller: Seller, shop: str, secret: str, buyer: Mapping[str, str]
) -> None:
    order = world.platform.place_order(shop, email=buyer["email"])
    assert order.customer is not None
    order.customer.first_name, order.customer.last_name = buyer["first_name"], buyer["last_name"]
    order.note, order.tags = buyer["words"], (buyer["words"],)
    assert (await seller.connect(shop, secret)).status_code == 200
    await world.settled()
    await notes_of_agents(await agent_of(seller), order, buyer)
    await world.settled()
    await deliveries(seller, shop, secret, buyer)
    await words_of_people(world, seller, buyer)
    await world.settled()


OF_THE_SHOP = {
    PendingStep.HISTORY: {one.name for one in declared() if OF_SHOP in one.belongs},
    PendingStep.STORE_RECORD: {"store_shops"},
}
"""What the open steps of a redacted shop name."""
USED_KEYS = "table idempotency_keys.key"
"""What a caller called a request goes after a day."""
NAMELESS = {"table facts.value", "table messages.text", "table agent_operations.after"}
"""What a store was told to remember goes with it: no request says the names that words go by."""


def tables(places: Iterable[str]) -> set[str]:
    return {place.removeprefix("table ").partition(".")[0] for place in places}


async def test_who_was_told_of_through_every_way_in_is_found_nowhere_once_they_are_erased(
    planted: World,
) -> None:
    dora, emil, fiona = someone("dora", 17), someone("emil", 23), someone("fiona", 42)
    async with browsing(planted.live) as one, browsing(planted.live) as two:
        seller = await sign_up(one)
        await plant(planted, seller, SHOP, SECRET, dora)
        other = await account_of(planted, two, fiona)
        await plant(planted, other, OTHER, OTHER_SECRET, emil)
        for found in await planted.places(dora, emil, fiona):
            assert {"dump", "log"} & found.keys() == {"dump"}
            assert len(found) > 8
        await a_shop_is_redacted(planted, dora)
        await a_customer_is_redacted(planted, emil)
        await an_account_is_deleted(planted, other, fiona, emil)


async def a_shop_is_redacted(world: World, buyer: Mapping[str, str]) -> None:
    await world.asked("redact", {"shop_id": 1, "shop_domain": SHOP})
    await world.run("gdpr-erasure")
    await world.run("retention-sweep")
    (request,) = (await world.operator.get("/api/admin/compliance")).json()["items"]
    named = set().union(*(OF_THE_SHOP[one] for one in request["pendingSteps"]))
    (found,) = await world.places(buyer)
    assert tables(found.keys() - {USED_KEYS, "dump"}) <= named, found

    admin = f"/api/admin/compliance/{request['id']}"
    for step in request["pendingSteps"]:
        done = await world.operator.post(f"{admin}/steps/{step}/done", json={"reason": "Asked."})
        assert done.status_code == 202, done.text
    await world.run("gdpr-erasure")
    await world.live.service.database.execute(
        "UPDATE idempotency_keys SET created_at = created_at - interval '1 day'"
    )
    await world.run("retention-sweep")
    assert await world.places(buyer) == [{}]


async def a_customer_is_redacted(world: World, buyer: Mapping[str, str]) -> None:
    customer = {"id": 7, "email": buyer["email"], "phone": buyer["phone"]}
    body = {"shop_id": 1, "shop_domain": OTHER, "customer": customer, "orders_to_redact": [1]}
    await world.asked("customer-redact", body)
    await world.run("gdpr-erasure")
    await world.run("retention-sweep")
    (found,) = await world.places(buyer)
    assert found.keys() - {"dump"} <= NAMELESS, found
    address = buyer["email"].lower()
    assert [place for place, hits in found.items() if address in hits] == []


async def an_account_is_deleted(
    world: World, seller: Seller, user: Mapping[str, str], buyer: Mapping[str, str]
) -> None:
    assert (await seller.browser.delete("/api/account")).status_code == 202
    for days in (31, 2, 366):
        await pass_time(world.live.service.database, days)
        await forget_what_expires(world)
        for job in ("gdpr-erasure", "retention-sweep", "prune-audit-log"):
            await world.run(job)
    assert await world.places(user, buyer) == [{}, {}]
