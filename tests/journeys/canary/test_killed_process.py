"""A process that is killed in the midst of an erasure leaves the rest of it to the one that follows."""

import asyncio

import anyio
import anyio.lowlevel
import httpx

from tests.journeys.canary.spelling import columns, found_in, personal, someone
from tests.journeys.conftest import CRON_SECRET, EVENTS, ServiceProcess, sign_up, signed
from tests.journeys.test_compliance import PLATFORM_SECRET, ROUTES, asked
from tests.timing import until
from tolsey.storage.database import Database

ORDERS = 60
RECEIPTS = "SELECT leg, rows_after FROM compliance_receipts"
DONE = "SELECT FROM compliance_requests WHERE completed_at IS NOT NULL"


async def test_an_erasure_is_done_whatever_process_dies_in_it(
    process: ServiceProcess, database: Database
) -> None:
    process.environment["COMMERCE_CLIENT_SECRET"] = PLATFORM_SECRET
    dora = someone("dora", 17)
    await asyncio.to_thread(process.start)
    async with httpx.AsyncClient(
        base_url=process.url, headers={"Origin": process.url}, timeout=60
    ) as browser:
        assert (await (await sign_up(browser)).connect()).status_code == 200
        for number in range(ORDERS):
            order = {"id": number + 1, "currency": "USD", "total_price": "1.00"}
            raw = personal(dora, {**order, "updated_at": "2026-07-01T10:00:00Z"} | TAGGED)
            answer = await browser.post(EVENTS, content=raw, headers=signed(raw))
            assert answer.status_code == 200, answer.text
        assert (await asked(browser, "redact", ROUTES["redact"])).status_code == 200

    for receipts in (1, 3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_erasure, process.url)
            with anyio.fail_after(200):
                while len(await database.fetch(RECEIPTS)) < receipts:
                    await anyio.lowlevel.checkpoint()
            process.kill()
        await asyncio.to_thread(process.start)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_erasure, process.url)
        await until(lambda: database.fetch(DONE))
        tasks.cancel_scope.cancel()

    rows = await database.fetch(RECEIPTS)
    assert len({row["leg"] for row in rows}) == len(rows) >= 5
    assert {row["rows_after"] for row in rows} == {0}
    left = [place async for place, said in columns(database) if found_in(said, *dora.values())]
    assert left == []


TAGGED = {"tags": someone("dora", 17)["words"], "landing_site": "/"}


async def run_erasure(url: str) -> None:
    """Have the job run; its process may die of it."""
    bearer = {"Authorization": f"Bearer {CRON_SECRET}"}
    try:
        async with httpx.AsyncClient(timeout=200) as client:
            # One that has just begun answers 503 while the lease of the killed one lasts.
            while (
                await client.post(f"{url}/api/cron/gdpr-erasure", headers=bearer)
            ).status_code != httpx.codes.OK:
                await anyio.sleep(0.1)
    except httpx.HTTPError:
        return
