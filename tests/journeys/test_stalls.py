"""A process that stands still for longer than its lease, as on a machine that swaps, comes back clean."""

import asyncio
from functools import partial

import httpx
import orjson

from tests.journeys.conftest import EVENTS, ServiceProcess, order_body, sign_up, signed
from tests.timing import PATIENCE_SECONDS, stall, until
from tolsey.storage.database import Database


async def deliver(client: httpx.AsyncClient, number: int) -> bool:
    """Deliver an order as a platform does, which sends it again until it is taken."""
    body = order_body(number)
    headers = signed(body, delivery_id=f"delivery-{number}")
    answer = await client.post(EVENTS, content=body, headers=headers)
    assert answer.status_code in {200, 503}, answer.text
    return answer.status_code == 200


async def have_arrived(database: Database, orders: int) -> bool:
    rows = await database.fetch("SELECT FROM commerce_orders WHERE order_id < 1000")
    return len(rows) == orders and not await database.fetch("SELECT FROM outbox")


async def test_a_process_that_stood_still_for_longer_than_its_lease_comes_back_clean(
    process: ServiceProcess, database: Database
) -> None:
    del process.environment["LEASE_SECONDS"]  # the one that it has in production
    await asyncio.to_thread(process.start)
    assert process.process is not None
    async with httpx.AsyncClient(
        base_url=process.url, headers={"Origin": process.url}, timeout=PATIENCE_SECONDS
    ) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
        await until(partial(deliver, browser, 1))
        quiet = len(process.log.read_text().splitlines())
        stalling = asyncio.create_task(stall(process.process.pid))
        await asyncio.sleep(0)
        await until(partial(deliver, browser, 2))
        await stalling
        await until(partial(deliver, browser, 3))
        assert (await browser.get("/api/auth/session")).status_code == 200
        assert (await browser.get("/api/health")).status_code == 200
        await until(partial(have_arrived, database, 3))
    assert await asyncio.to_thread(process.terminate) == 0

    said = [orjson.loads(line) for line in process.log.read_text().splitlines()[quiet:]]
    assert "shard.lease_lapsed" in [one["event"] for one in said]
    assert [one for one in said if one["level"] in {"error", "critical"}] == []
    assert not await database.fetch("SELECT FROM dead_letters")
