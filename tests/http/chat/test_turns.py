"""Nobody's long answers keep another organization's from being made."""

from contextlib import AsyncExitStack

import anyio
import httpx
import pytest

from tests.http.chat.visitor import BASE, DOLLAR, Visitor, arrive, events_of, grant
from tests.timing import until
from tolsey.http.chat import answering
from tolsey.runtime.outbox.lanes import Lane
from tolsey.sandbox.model import Model, Script
from tolsey.service import Running


async def waits(lane: Lane, count: int) -> None:
    await until(lambda: lane.waiting == count)


async def test_an_answer_takes_a_place_in_the_lane_of_models(
    live: Running, rich: Visitor, model: Model
) -> None:
    lane, gate = dict(live.service.runtime.admin.lanes)["model"], anyio.Event()
    model.usual = Script(said=("Fine.",), gates={0: gate})
    async with rich.asking() as response:
        assert lane.working == 1
        gate.set()
        assert [one.name async for one in events_of(response)][-1] == "done"
    await until(lambda: not lane.working)


async def test_an_organization_whose_answers_fill_its_share_waits_and_no_other_does(
    live: Running, rich: Visitor, model: Model, url: str
) -> None:
    lane = Lane(4)  # a share of one place
    live.service.chat.place = lane.place
    gate = anyio.Event()
    model.scripts.append(Script(said=("Fine.",), gates={0: gate}))
    async with (
        AsyncExitStack() as stack,
        httpx.AsyncClient(base_url=url, headers={"Origin": BASE}, timeout=60) as browser,
        anyio.create_task_group() as tasks,
    ):
        bob = await arrive(browser, "bob@example.com")
        await grant(live, bob, DOLLAR)
        first = await stack.enter_async_context(rich.asking())
        ends: list[str] = []

        async def ask_again() -> None:
            ends.append((await rich.ask()).last.name)

        tasks.start_soon(ask_again)
        await waits(lane, 1)
        assert (await rich.credits())["held"] > 0
        assert len(model.asked) == 1
        assert (await bob.ask()).last.name == "done"
        assert (ends, len(model.asked)) == ([], 2)
        gate.set()
        assert [one.name async for one in events_of(first)][-1] == "done"
    assert ends == ["done"]


async def test_an_answer_that_gets_no_place_is_refused_and_costs_nothing(
    live: Running, rich: Visitor, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane(1)
    live.service.chat.place = lane.place
    monkeypatch.setattr(answering, "WAIT_SECONDS", 0.05)
    async with lane.place("another"):
        refused = await rich.ask()
    assert (refused.status, refused.problem["code"]) == (503, "overloaded")
    assert refused.headers["retry-after"] == "1"
    assert model.asked == []
    credits = await rich.credits()
    assert (credits["balance"], credits["held"]) == (10 * DOLLAR, 0)
    assert (await rich.ask()).last.name == "done"


async def test_an_answer_that_waits_in_a_process_that_stops_is_refused_there(
    live: Running, rich: Visitor, model: Model
) -> None:
    lane = Lane(1)
    live.service.chat.place = lane.place
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await rich.ask()).status)

    async with anyio.create_task_group() as tasks, lane.place("another"):
        tasks.start_soon(ask)
        await waits(lane, 1)
        live.service.chat.retire()
    assert (statuses, model.asked) == ([503], [])
    assert (await rich.credits())["held"] == 0
