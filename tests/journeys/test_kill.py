"""The process dies in the middle of a burst; what was answered is there, once."""

import asyncio
import random
from collections.abc import Iterable

import anyio
import anyio.lowlevel
import httpx

from tests.journeys.conftest import EVENTS, ServiceProcess, order_body, sign_up, signed
from tolsey.storage.database import Database

DELIVERIES = 600
CONNECTIONS = 16


async def send(client: httpx.AsyncClient, order_id: int) -> str | None:
    """Deliver one order; the answer's status word, or None when there was no answer."""
    body = order_body(order_id)
    try:
        answer = await client.post(
            EVENTS, content=body, headers=signed(body, delivery_id=f"delivery-{order_id}")
        )
    except httpx.HTTPError:
        return None
    return answer.json()["status"] if answer.status_code == 200 else None


async def burst(url: str, orders: Iterable[int]) -> dict[int, str]:
    """Deliver orders over several connections; the answered ones, by order."""
    waiting, answered = list(orders), dict[int, str]()
    async with (
        httpx.AsyncClient(base_url=url, timeout=10) as client,
        anyio.create_task_group() as tasks,
    ):

        async def connection() -> None:
            while waiting:
                order_id = waiting.pop()
                status = await send(client, order_id)
                if status is not None:
                    answered[order_id] = status

        for _ in range(CONNECTIONS):
            tasks.start_soon(connection)
    return answered


async def test_a_kill_in_a_burst_loses_nothing_that_was_answered_and_applies_nothing_twice(
    process: ServiceProcess, database: Database
) -> None:
    await asyncio.to_thread(process.start)
    async with httpx.AsyncClient(base_url=process.url, headers={"Origin": process.url}) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
    orders = list(range(1, DELIVERIES + 1))
    random.Random(1).shuffle(orders)  # noqa: S311 - repeatable, no secret

    answered: dict[int, str] = {}
    async with anyio.create_task_group() as tasks:

        async def deliver() -> None:
            answered.update(await burst(process.url, orders))

        tasks.start_soon(deliver)
        with anyio.fail_after(60):
            while await count(database, "commerce_webhook_events") < DELIVERIES // 4:
                await anyio.lowlevel.checkpoint()
        process.kill()

    assert 0 < len(answered) < DELIVERIES, "the kill must fall into the burst"
    kept = await delivered(database)
    assert {f"delivery-{order}" for order in answered} <= kept

    # The platform sends again what it got no answer to, and some of what it did.
    await asyncio.to_thread(process.start)
    again = [*(order for order in orders if order not in answered), *list(answered)[:50]]
    second = await burst(process.url, again)

    assert len(second) == len(again)
    assert all(second[order] == "duplicate" for order in list(answered)[:50])
    assert len(await delivered(database)) == DELIVERIES
    row = await database.fetchrow(
        "SELECT count(*) AS n FROM commerce_orders WHERE order_id <= $1", DELIVERIES
    )
    assert row is not None
    assert row["n"] == DELIVERIES  # the shop's own orders were imported
    audits = await database.fetch(
        "SELECT metadata->'payload'->>'id' AS order_id, count(*) AS times FROM audit_log"
        " WHERE event = 'commerce.webhook.orders.create' GROUP BY 1"
    )
    assert len(audits) == DELIVERIES
    assert {row["times"] for row in audits} == {1}
    assert await asyncio.to_thread(process.terminate) == 0


async def count(database: Database, table: str) -> int:
    row = await database.fetchrow(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 - our own names
    assert row is not None
    return int(row["n"])


async def delivered(database: Database) -> set[str]:
    """List what the test delivered; the platform itself tells of the end of an import."""
    rows = await database.fetch(
        "SELECT delivery_id FROM commerce_webhook_events WHERE delivery_id LIKE 'delivery-%'"
    )
    return {row["delivery_id"] for row in rows}
