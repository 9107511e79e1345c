"""The process dies in the middle of a snapshot: nothing of it is there, and the next one takes it whole, once."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests import timing
from tests.journeys.conftest import ServiceProcess, sign_up
from tests.journeys.test_kill import count
from tolsey.sandbox.storefronts import Storefront, Storefronts, product
from tolsey.storage.database import Database

DOMAIN, PRODUCTS = "shop.example", 600
CATALOGUE = ("storefront_products", "storefront_variants", "storefront_snapshots")
HELD = """
SELECT count(*) AS n FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE c.relname = 'storefront_snapshots' AND NOT l.granted
"""


@pytest.fixture
async def web() -> AsyncIterator[str]:
    listed = [product(n + 1, quantity=100) for n in range(PRODUCTS)]
    async with Storefronts(Storefront(domain=DOMAIN, products=listed)).serve() as url:
        yield url


async def key_of(browser: httpx.AsyncClient) -> dict[str, str]:
    seller = await sign_up(browser)
    scopes = ["intelligence:read", "intelligence:write"]
    answer = await seller.post(
        "/api/account/api-keys", organizationId=seller.organization_id, scopes=scopes
    )
    return {"X-Api-Key": answer.json()["value"]}


async def until(database: Database, sql: str) -> None:

    async def count() -> int:
        return int((await database.fetch(sql))[0]["n"])

    await timing.until(count)


async def test_a_kill_in_the_middle_of_a_snapshot_leaves_nothing_half_and_the_next_takes_it_once(
    process: ServiceProcess, web: str, database: Database
) -> None:
    process.environment |= {
        "STOREFRONT_URL": web,
        "SCAN_PACE_SECONDS": "0",
    }
    await asyncio.to_thread(process.start)
    async with httpx.AsyncClient(
        base_url=process.url, headers={"Origin": process.url}, timeout=60
    ) as browser:
        key = await key_of(browser)
        async with database.transaction() as held:
            # Products and variants are written by then, the snapshot itself is not.
            await held.execute("LOCK TABLE storefront_snapshots IN SHARE MODE")
            asked = await browser.post(
                "/api/intelligence/scans", headers=key, json={"domain": DOMAIN}
            )
            assert asked.status_code == 202, asked.text
            await until(database, HELD)
            process.kill()
        assert [await count(database, table) for table in CATALOGUE] == [0, 0, 0]
        await asyncio.to_thread(process.start)
        await until(database, "SELECT count(*) AS n FROM storefront_scans WHERE state = 'done'")
        assert [await count(database, table) for table in CATALOGUE] == [PRODUCTS, PRODUCTS, 1]
        # What was written came once: the first snapshot of a shop is no list of changes.
        assert await count(database, "storefront_changes") == 0
        told = await browser.get(f"/api/intelligence/scans/{asked.json()['id']}", headers=key)
        assert told.json()["report"]["persisted"]
    await until(database, "SELECT (count(*) = 0)::int AS n FROM outbox")
    assert await count(database, "dead_letters") == 0
    assert await asyncio.to_thread(process.terminate) == 0
