"""The process dies, or is told to stop, in the middle of an answer."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from tests.http.chat.visitor import DOLLAR, StreamEvent, Visitor, arrive, ended, events_of
from tests.http.people import KEYRING, PASSWORD
from tests.journeys.conftest import ServiceProcess, free_port
from tests.journeys.served import Fleet
from tests.timing import LEASE_SECONDS, until
from tolsey.http.layout.words import moved
from tolsey.sandbox.model import KEY, NAME, Model, Script
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

INPUT, OUTPUT = 3, 15
ADMINISTRATOR = "operator@example.com"
TWELVE = "twelve bytes"


@pytest.fixture
def settings(database_url: str, redis_url: str, model: Model) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "ENCRYPTION_KEYS": KEYRING,
        "LEASE_SECONDS": str(LEASE_SECONDS),
        "LLM_BASE_URL": model.url,
        "LLM_API_KEY": KEY,
        "LLM_MODEL": NAME,
        "CHAT_LEASE_SECONDS": "2",
        "CHAT_CHECKPOINT_SECONDS": "0.1",
    }


@pytest.fixture
def process(settings: dict[str, str], tmp_path: Path) -> Iterator[ServiceProcess]:
    made = ServiceProcess(settings, tmp_path / "service.log")
    yield made
    made.end()


@asynccontextmanager
async def visiting(url: str, database: Database) -> AsyncIterator[Visitor]:
    """Come with ten dollars that an operator gave."""
    async with (
        httpx.AsyncClient(base_url=url, headers={"Origin": url}, timeout=30) as browser,
        httpx.AsyncClient(base_url=url, headers={"Origin": url}) as operator,
    ):
        visitor = await arrive(browser)
        await administrators.create_administrator(database, ADMINISTRATOR, PASSWORD)
        login = {"email": ADMINISTRATOR, "password": PASSWORD}
        assert (await operator.post("/api/auth/login", json=login)).status_code == 200
        gift = {"organizationId": visitor.organization_id, "amount": 10 * DOLLAR, "reason": "gift"}
        assert (await operator.post("/api/admin/credits/adjust", json=gift)).status_code == 200
        yield visitor


async def checkpointed(database: Database, used: int) -> None:
    await until(lambda: database.fetch("SELECT 1 FROM credit_holds WHERE used = $1", used))


async def read_until_cut(
    response: httpx.Response, told: list[StreamEvent], enough: anyio.Event, deltas: int
) -> None:
    """Read until so many deltas have come, then on to the end, if there is one."""
    try:
        async for one in events_of(response):
            told.append(one)
            if sum(known.name == "delta" for known in told) == deltas:
                enough.set()
    except httpx.HTTPError:
        return


async def killed_while_answering(
    process: ServiceProcess, database: Database, model: Model
) -> tuple[Visitor, int]:
    """Kill a process once the cost of five words is on disk; answers who asked, and that cost."""
    model.usual = Script(said=(TWELVE,) * 50, gates={5: anyio.Event()})
    await asyncio.to_thread(process.start)
    told: list[StreamEvent] = []
    enough = anyio.Event()
    async with (
        visiting(process.url, database) as visitor,
        visitor.asking() as response,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read_until_cut, response, told, enough, 5)
        await enough.wait()
        cost = told[0].data["inputTokens"] * INPUT + 5 * 4 * OUTPUT
        await checkpointed(database, cost)
        await asyncio.to_thread(process.kill)
    return visitor, cost


async def test_a_killed_process_settles_at_the_cost_it_last_wrote_down(
    process: ServiceProcess, database: Database, model: Model
) -> None:
    visitor, cost = await killed_while_answering(process, database, model)
    assert not await database.fetch("SELECT 1 FROM chat_generations WHERE ended_at IS NOT NULL")

    await asyncio.to_thread(process.start)
    (row,) = await ended(database)
    assert (row["outcome"], row["estimated"]) == ("crashed", True)
    assert row["charged"] == row["cost"] == cost
    async with httpx.AsyncClient(base_url=process.url, headers={"Origin": process.url}) as browser:
        login = {"email": "ann@example.com", "password": PASSWORD}
        assert (await browser.post("/api/auth/login", json=login)).status_code == 200
        seen = await Visitor(
            browser, visitor.user_id, visitor.organization_id, visitor.store_id
        ).credits()
        query = {"organizationId": visitor.organization_id}
        ledger = await browser.get("/api/credits/ledger", params=query)
        billing = await browser.get("/billing", params=query)
    assert (seen["balance"], seen["held"]) == (10 * DOLLAR - cost, 0)
    last = ledger.json()["items"][0]
    assert (last["kind"], last["reference"]) == ("settle", f"chat:{row['id']}")
    assert last["amount"] == -cost
    assert re.search(rf">Used</td><td [^>]*>{re.escape(moved(-cost))}</td>", billing.text)
    assert await asyncio.to_thread(process.terminate) == 0


async def test_a_killed_process_s_hold_ends_within_a_minute_of_the_restart(
    settings: dict[str, str], process: ServiceProcess, database: Database, model: Model
) -> None:
    """Though its lease is what it is without a setting: a quarter of an hour."""
    del settings["CHAT_LEASE_SECONDS"]
    _, cost = await killed_while_answering(process, database, model)
    await asyncio.to_thread(process.start)
    (row,) = await ended(database)
    assert (row["outcome"], row["charged"], row["cost"]) == ("crashed", cost, cost)
    (hold,) = await database.fetch("SELECT used, closed_at, lease_until FROM credit_holds")
    assert hold["used"] == cost
    assert hold["closed_at"] < hold["lease_until"]


async def test_a_process_that_is_told_to_stop_tells_how_its_answers_end(
    process: ServiceProcess, database: Database, model: Model
) -> None:
    soon = two_answers(model)
    await asyncio.to_thread(process.start)
    running = process.process
    assert running is not None
    stop = partial(running.send_signal, signal.SIGTERM)
    async with visiting(process.url, database) as visitor:
        long, short = await answered_while(visitor, stop, soon)
    assert await asyncio.to_thread(running.wait, 40) == 0
    cost = long[0].data["inputTokens"] * INPUT + 5 * 4 * OUTPUT
    said = long[-1].data
    assert (long[-1].name, said["reason"], said["spent"]) == ("aborted", "stopping", cost)
    assert short[-1].name == "done"
    rows = {row["id"]: row for row in await ended(database, 2)}
    row = rows[said["generationId"]]
    assert (row["outcome"], row["charged"], row["cost"]) == ("stopping", cost, cost)
    holds = await database.fetch("SELECT id, used, closed_at FROM credit_holds")
    assert {hold["id"]: hold["used"] for hold in holds}[f"chat:{row['id']}"] == cost
    assert all(hold["closed_at"] is not None for hold in holds)


async def test_processes_that_are_replaced_tell_how_their_answers_end(
    settings: dict[str, str], database: Database, model: Model, tmp_path: Path
) -> None:
    soon = two_answers(model)
    fleet = Fleet(tmp_path, free_port(), settings)
    fleet.start()
    try:
        async with visiting(await fleet.ready(), database) as visitor:
            replace = partial(fleet.process.send_signal, signal.SIGHUP)
            long, short = await answered_while(visitor, replace, soon)
            await fleet.until_said("process.stopped", 2)
            again = await visitor.ask()
        fleet.process.send_signal(signal.SIGTERM)
        assert await fleet.wait() == 0
    finally:
        fleet.end()
    cost = long[0].data["inputTokens"] * INPUT + 5 * 4 * OUTPUT
    said = long[-1].data
    assert (long[-1].name, said["reason"], said["spent"]) == ("aborted", "stopping", cost)
    assert short[-1].name == again.last.name == "done"


def two_answers(model: Model) -> anyio.Event:
    """Have one answer go on for ever, and one wait for a word; both say five deltas first."""
    soon = anyio.Event()
    model.scripts.append(Script(said=(TWELVE,) * 50, usage="never", gates={5: anyio.Event()}))
    model.scripts.append(Script(said=(TWELVE,) * 9, gates={5: soon}))
    return soon


async def answered_while(
    visitor: Visitor, act: Callable[[], None], soon: anyio.Event
) -> tuple[list[StreamEvent], list[StreamEvent]]:
    """Do something amid the two answers, and give the second its word; tell what was read."""
    long: list[StreamEvent] = []
    short: list[StreamEvent] = []
    begun = [anyio.Event(), anyio.Event()]
    async with (
        visitor.asking() as first,
        visitor.asking() as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(read_until_cut, first, long, begun[0], 5)
        tasks.start_soon(read_until_cut, second, short, begun[1], 5)
        for each in begun:
            await each.wait()
        act()
        soon.set()
    return long, short
