"""One organization's reports never keep another's, or short queries, from the database."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tolsey.storage.database import Database
from tolsey.storage.errors import StorageBusy, StorageError, StorageUnavailable
from tolsey.storage.reports import pool
from tolsey.storage.reports.pool import Reports

BLOCKED = "SELECT pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1)"

RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query = $1 AND state = 'active'"


@pytest.fixture
async def reports(database_url: str) -> AsyncIterator[Reports]:
    opened = Reports(database_url, size=3, places=2)
    await opened.open()
    yield opened
    await opened.close()


async def test_an_organization_with_many_reports_leaves_room_for_another(
    reports: Reports, database: Database, database_url: str
) -> None:
    gate = await asyncpg.connect(database_url)
    await gate.execute("SELECT pg_advisory_lock(1)")
    busy = [asyncio.ensure_future(reports.of("org_a").fetch(BLOCKED)) for _ in range(20)]
    try:
        async with asyncio.timeout(30):
            while await gate.fetchval(RUNNING, BLOCKED) < 2:
                await asyncio.sleep(0.01)
            assert await reports.of("org_b").fetchrow("SELECT 1 AS one")
            assert await database.fetchrow("SELECT 1 AS one")
            assert await gate.fetchval(RUNNING, BLOCKED) == 2, "no more than its places run"
    finally:
        await gate.close()
        outcomes = await asyncio.gather(*busy, return_exceptions=True)
    assert all(isinstance(one, list | StorageError) for one in outcomes)


async def test_more_than_may_wait_are_refused_at_once(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "WAITING", 0)
    async with reports.place("org_a"), reports.place("org_a"):
        with pytest.raises(StorageBusy):
            await reports.of("org_a").fetchrow("SELECT 1")
        assert await reports.of("org_b").fetchrow("SELECT 1")
    assert await reports.of("org_a").fetchrow("SELECT 1")


async def test_a_report_ends_at_the_server_by_itself(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pool.SESSION, "statement_timeout", "100")
    reports = Reports(database_url)
    await reports.open()
    try:
        with pytest.raises(StorageUnavailable):
            await reports.of("org_a").fetch("SELECT pg_sleep(3600)")
    finally:
        await reports.close()


async def test_a_report_changes_nothing(reports: Reports) -> None:
    with pytest.raises(StorageError, match="ReadOnly"):
        await reports.of("org_a").fetch("CREATE TABLE made (id int)")


async def test_a_statement_is_planned_for_its_values_however_often_it_ran(
    database_url: str,
) -> None:
    reports = Reports(database_url, size=1)
    await reports.open()
    said: Any = "SELECT 1 WHERE $1::bigint IS NULL OR $1 = 1"
    try:
        for _ in range(12):
            await reports.of("org_a").fetch(said, 1)
        row = await reports.of("org_a").fetchrow(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1",
            said,
        )
    finally:
        await reports.close()
    assert row
    assert dict(row) == {"generic_plans": 0, "custom_plans": 12}
