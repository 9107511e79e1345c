import asyncio
from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest

from tests.runtime.proxy import Proxy
from tests.timing import until
from tolsey.storage.database import Database, patience
from tolsey.storage.errors import StorageUnavailable

LAST = "SELECT state, query FROM pg_stat_activity WHERE pid = $1"
WHO = "SELECT pg_backend_pid() AS pid"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Open a pool of one connection."""
    opened = Database(database_url, max_size=1)
    await opened.open()
    yield opened
    await opened.close()


async def test_a_query_is_all_that_is_sent(database: Database, database_url: str) -> None:
    row = await database.fetchrow(WHO)
    assert row
    watcher = await asyncpg.connect(database_url)
    last = await watcher.fetchrow(LAST, row["pid"])
    await watcher.close()
    assert last
    assert dict(last) == {"state": "idle", "query": WHO}


async def test_a_transaction_that_is_broken_off_leaves_nothing_to_who_comes_next(
    database: Database,
) -> None:
    entered = asyncio.Event()

    async def wait_in_a_transaction() -> None:
        async with database.transaction() as tx:
            await tx.execute("SET LOCAL statement_timeout = '1s'")
            await tx.execute("CREATE TABLE unfinished (id int)")
            entered.set()
            await asyncio.sleep(3600)

    task = asyncio.ensure_future(wait_in_a_transaction())
    await asyncio.wait_for(entered.wait(), 60)
    task.cancel()
    await asyncio.wait({task})
    row = await database.fetchrow(
        "SELECT to_regclass('unfinished') AS made, current_setting('statement_timeout') AS timeout,"
        " pg_current_xact_id_if_assigned() AS open"
    )
    assert row
    assert dict(row) == {"made": None, "timeout": "1min", "open": None}


@pytest.fixture
async def cable(database_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(database_url).standing() as proxy:
        yield proxy


async def test_who_is_not_answered_is_told_so_and_the_next_is_served(cable: Proxy) -> None:
    database = Database(cable.url, max_size=2)
    await database.open()

    async def write() -> None:
        async with database.transaction() as tx:
            await tx.execute("SELECT 1")

    calls = (partial(database.fetch, "SELECT 1"), partial(database.execute, "SELECT 1"), write)
    try:
        cable.silent = True
        with patience(0.1):
            for call in calls * 2:  # over connections that stand, then over none
                with pytest.raises(StorageUnavailable):
                    await asyncio.wait_for(call(), 60)
        cable.silent = False
        await cable.cut()
        assert await database.fetchrow("SELECT 1 AS one")
    finally:
        await database.close()


async def test_who_goes_away_does_not_wait_for_a_database_that_hangs(cable: Proxy) -> None:
    database = Database(cable.url, max_size=1)
    await database.open()
    try:
        cable.silent = True
        with patience(60):
            asking = asyncio.ensure_future(database.fetch("SELECT 1"))
            await asyncio.wait_for(cable.swallowed.wait(), 60)
            asking.cancel()
            await asyncio.wait_for(asyncio.wait({asking}), 60)
        assert asking.cancelled()
    finally:
        await database.close()


async def test_a_statement_that_nobody_waits_for_ends_at_the_server(database_url: str) -> None:
    database, watcher = Database(database_url, max_size=1), await asyncpg.connect(database_url)
    running = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(3600)'"
    await database.open()
    try:
        with patience(0.5), pytest.raises(StorageUnavailable):
            await database.fetch("SELECT pg_sleep(3600)")

        async def is_done() -> bool:
            return not await watcher.fetchval(running + " AND state = 'active'")

        await until(is_done)
    finally:
        await database.close()
        await watcher.close()
