"""What holds for one process holds for many: secrets, scheduled jobs, health and limits."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import pytest
import structlog

from tests.http.people import Clock
from tests.journeys.conftest import EVENTS, SHOP, order_body, sign_up, signed
from tests.journeys.neighbours import browsing, settled, shared
from tests.timing import LEASE_SECONDS, TestTime, until
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.service import Running, running
from tolsey.service.timetable import tick
from tolsey.settings import Settings
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.database import Database

# Cached shop secrets


def directory_of(process: Running) -> ShopDirectory:
    app: Any = process.app
    receiver: CommerceEvents = app.receivers[EVENTS]
    return receiver._directory


async def test_a_secret_replaced_through_one_process_is_replaced_in_all(
    pair: tuple[Running, Running],
) -> None:
    async with browsing(pair[0]) as browser, browsing(pair[1]) as other:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
        await settled(pair[0])
        for client in (browser, other):
            body = order_body(1)
            assert (
                await client.post(EVENTS, content=body, headers=signed(body))
            ).status_code == 200
        assert all(directory_of(process).cached(SHOP) for process in pair)
        assert (await seller.browser.delete(disconnect(seller.store_id))).status_code == 200
        await until(lambda: not any(directory_of(process).cached(SHOP) for process in pair))
        for client in (browser, other):
            body = order_body(2)
            refused = await client.post(EVENTS, content=body, headers=signed(body))
            assert refused.status_code == 401


def disconnect(store_id: str) -> str:
    return f"/api/integrations/commerce/custom-app?storeId={store_id}"


async def test_what_redis_lost_is_forgotten(pair: tuple[Running, Running]) -> None:
    async with browsing(pair[0]) as browser:
        seller = await sign_up(browser)
        await seller.connect()
        await settled(pair[0])
        for process in pair:
            await directory_of(process).find(SHOP)
    await pair[0].service.cache.flush()
    await until(lambda: not any(directory_of(process).cached(SHOP) for process in pair))
    await shared(*pair)


# Scheduled jobs


NAME = "retention-sweep"
FOUR = datetime.now(UTC).replace(hour=4, minute=0, second=0, microsecond=0) - timedelta(days=1)
"""When the job was due; past, so that what the processes' clocks say is due is due by the database's."""


async def tick_all(*processes: Running) -> None:
    async with anyio.create_task_group() as tasks:
        for process in processes * 3:
            service = process.service
            tasks.start_soon(tick, service.runtime, service.clock, NAME)


async def test_simultaneous_ticks_of_all_processes_are_one_run(brisk: Settings) -> None:
    start = partial(running, brisk, timers=False, poll_seconds=0.1, clock=Clock(FOUR))
    async with start() as one, start() as other:
        await shared(one, other)
        await tick_all(one, other)
        assert await runs(one) == [(FOUR, "completed")]


async def test_a_clock_that_is_ahead_runs_early_and_nothing_twice(brisk: Settings) -> None:
    clock, ahead = Clock(FOUR - timedelta(minutes=3)), Clock(FOUR + timedelta(minutes=2))
    start = partial(running, brisk, timers=False, poll_seconds=0.1)
    async with start(clock=clock) as one, start(clock=ahead) as other:
        await shared(one, other)
        await tick_all(other)
        assert await runs(one) == [(FOUR, "completed")]
        clock.advance(timedelta(minutes=3))
        ahead.advance(timedelta(minutes=3))
        await tick_all(one, other)
        assert await runs(other) == [(FOUR, "completed")]


async def test_processes_that_start_at_once_catch_up_once(
    brisk: Settings, database: Database
) -> None:
    missed = FOUR - timedelta(days=3)
    await database.execute(
        "INSERT INTO cron_executions (id, job, scheduled_at, trigger, started_at, finished_at,"
        " status) VALUES ('run_1', $1, $2, 'schedule', $2, $2, 'completed')",
        NAME,
        missed,
    )
    noon = Clock(FOUR + timedelta(hours=8))
    both = asyncio.Barrier(2)

    async def live() -> None:
        async with running(brisk, poll_seconds=0.1, clock=noon) as process:
            await both.wait()
            assert await runs(process, 2) == [(missed, "completed"), (FOUR, "completed")]
            await both.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live())
        tasks.create_task(live())


async def runs(process: Running, least: int = 1) -> list[tuple[datetime, str]]:
    """Wait until the job has run and nothing waits or runs; answer its runs."""
    found: list[tuple[datetime, str]] = []

    async def have_ended() -> bool:
        await settled(process)
        rows = await process.service.database.fetch(
            "SELECT scheduled_at, status FROM cron_executions WHERE job = $1 ORDER BY scheduled_at",
            NAME,
        )
        found[:] = [(row["scheduled_at"], row["status"]) for row in rows]
        return len(found) >= least and all(status != "running" for _, status in found)

    await until(have_ended)
    return found


# Health


async def test_a_process_without_a_lease_is_unwell(pair: tuple[Running, Running]) -> None:
    async with browsing(pair[0]) as browser:
        await until(lambda: pair[0].service.shard.leased)
        assert (await browser.get("/api/health")).status_code == 200
        with structlog.testing.capture_logs() as written:
            answer = None
            while answer is None or answer.status_code == 200:  # until no beat comes in between
                pair[0].service.runtime.scheduler.lease_until = float("-inf")
                answer = await browser.get("/api/health")

    assert answer.status_code == 503
    assert answer.json()["checks"] == {"db": True, "cache": False}
    assert [entry["reason"] for entry in written if entry["event"] == "health.degraded"] == [
        "no lease"
    ]


# Limits without Redis


async def test_processes_that_lost_redis_share_a_limit(
    pair: tuple[Running, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    for process in pair:
        assert process.service.limits._sharers() == 2
    shard = pair[0].service.shard
    monkeypatch.setattr(shard._ownership._presence, "beat", lost)
    await until(lambda: shard.away_seconds > 0)
    time = pair[0].service.runtime.time
    assert isinstance(time, TestTime)
    time.advance(1.1 * LEASE_SECONDS)
    assert not shard.leased
    assert sum(one.alive for one in shard.members()) == 1
    assert pair[0].service.limits._sharers() == 2


async def lost(*_: object) -> Any:
    raise CacheUnavailable("away")
