"""Shops that do not answer, as a real process meets them: nobody else waits, and no restart loses what was accepted."""

import asyncio
import json

import anyio
import httpx
import pytest

from tests.journeys.conftest import (
    EVENTS,
    SECRET,
    SHOP,
    Seller,
    ServiceProcess,
    sign_up,
    signed,
)
from tests.journeys.test_kill import count
from tests.mcp.real.served_stores import Keeper
from tests.mcp.tools.shop import ITEM, answered, stocked
from tests.mcp.wire import Agent
from tests.timing import until
from tolsey.runtime.outbox.lanes import PLACES
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, ShopSpec
from tolsey.storage.database import Database

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

SLOW, QUICK = ("ann.myshopify.com", "bob.myshopify.com"), "cleo.myshopify.com"
SHARE = PLACES["platform"] // 4
"""So many places one organization has at most."""


async def unread(database: Database) -> int:
    """Count the orders that are still to be read; a job that is due may wait beside them."""
    return await count(database, "outbox WHERE name = 'ReadOrder'")


async def is_quiet(database: Database) -> bool:
    return await count(database, "outbox") == 0


async def connected(process: ServiceProcess, browser: httpx.AsyncClient, shop: str) -> Seller:
    """Sign someone up whose store is connected to a shop."""
    seller = await sign_up(browser, f"{shop}@example.com")
    answer = await seller.connect(shop)
    assert answer.status_code == 200, (answer.text, process.log.read_text()[-2000:])
    return seller


async def edited(web: httpx.AsyncClient, shop: str, order_id: int, n: int) -> None:
    """Deliver that an order was edited: what it is now has to be read from its shop."""
    body = json.dumps({"order_edit": {"id": n + 1, "order_id": order_id}}).encode()
    headers = signed(body, "orders/edited", shop=shop, delivery_id=f"edit-{n}")
    answer = await web.post(EVENTS, content=body, headers=headers)
    assert answer.status_code == 200, answer.text


async def test_reads_of_two_slow_shops_keep_no_others_agent_and_no_renewal_waiting(
    process: ServiceProcess, platform: Platform, database: Database
) -> None:
    for shop in (*SLOW, QUICK):
        scopes = (*ALL_SCOPES, *WRITE_SCOPES)
        platform.add_shop(
            ShopSpec(domain=shop, client_id="client-1", client_secret=SECRET, scopes=scopes)
        )
    stocked(platform, QUICK)
    await asyncio.to_thread(process.start)

    def visitor() -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=process.url, headers={"Origin": process.url}, timeout=60)

    async with visitor() as ann, visitor() as bob, visitor() as cleo:
        await connected(process, ann, SLOW[0])
        await connected(process, bob, SLOW[1])
        seller = await connected(process, cleo, QUICK)
        address = f"{process.url}/api/mcp/v1/{seller.store_id}"
        token = await Keeper(cleo, seller.store_id, address).token("inventory:write")
        agent = Agent(cleo, address, {"Authorization": f"Bearer {token}"})
        await until(lambda: is_quiet(database))

        before = platform.faults.happened
        held = [platform.faults.hold() for _ in range(len(SLOW) * SHARE)]
        for n in range(50):
            await edited(ann, SLOW[n % 2], n + 1, n)
        with anyio.fail_after(120):
            while platform.faults.happened < before + len(held):
                await anyio.sleep(0.02)
        platform.revoke_tokens(QUICK)
        granted = platform.grants
        reported = answered(
            await agent.call(
                "adjust_inventory",
                idempotency_key="key-00001",
                inventory_item_id=str(ITEM),
                location_id=str(LOCATION_ID),
                delta=-3,
            )
        )
        assert (reported["status"], reported["after"]) == ("applied", {"available": 7})
        assert platform.grants == granted + 1
        assert await unread(database) == 50
        for one in held:
            one.set()
        await until(lambda: is_quiet(database))
    assert await count(database, "dead_letters") == 0
    assert await asyncio.to_thread(process.terminate) == 0


async def test_six_kills_in_a_row_while_the_platform_hangs_lose_and_bury_nothing(
    process: ServiceProcess, platform: Platform, database: Database
) -> None:
    orders = sorted(platform.shop(SHOP).orders)[:40]
    held: list[anyio.Event] = []

    async def at_work() -> bool:
        return platform.faults.happened == len(held)

    await asyncio.to_thread(process.start)
    async with httpx.AsyncClient(
        base_url=process.url, headers={"Origin": process.url}, timeout=60
    ) as browser:
        await connected(process, browser, SHOP)
        await until(lambda: is_quiet(database))
        # What was sold before is imported; of that nothing tells whether an edit's order was read again.
        await database.execute("DELETE FROM commerce_orders")
        for life in range(6):
            held += [platform.faults.hold() for _ in range(SHARE)]
            if life == 0:
                for n, order_id in enumerate(orders):
                    await edited(browser, SHOP, order_id, n)
            else:
                await asyncio.to_thread(process.start)
            await until(at_work)
            assert await unread(database) == len(orders)
            process.kill()
    assert await count(database, "commerce_orders") == 0
    for one in held:
        one.set()
    await asyncio.to_thread(process.start)
    await until(lambda: is_quiet(database))
    assert await count(database, "dead_letters") == 0
    kept = await database.fetch("SELECT order_id FROM commerce_orders ORDER BY order_id")
    assert [row["order_id"] for row in kept] == orders
    assert await asyncio.to_thread(process.terminate) == 0
