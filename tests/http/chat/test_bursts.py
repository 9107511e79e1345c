"""However many ask at once, however their answers go: nobody spends what is not there."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.chat.visitor import BASE, Visitor, arrive, ended, events_of, grant
from tests.http.people import settings_of
from tests.journeys.neighbours import shared
from tests.timing import beat_often
from tolsey.sandbox.model import Model, Script
from tolsey.sandbox.server import listening
from tolsey.service import Running, running

INPUT, OUTPUT = 3, 15
VISITORS = count(1)


@dataclass(frozen=True)
class Asked:
    """How one of a burst asks, and after how many words it leaves; None reads to the end."""

    most: int
    script: Script
    leaves_after: int | None


scripts = st.builds(
    Script,
    said=st.lists(st.text("ab é日", min_size=1, max_size=30), max_size=12).map(tuple),
    usage=st.sampled_from(["end", "every", "never"]),
    prompt_tokens=st.none() | st.integers(0, 2_000),
    cut_after=st.none() | st.integers(0, 12),
    heeds_limit=st.booleans(),
)
bursts = st.lists(
    st.builds(Asked, st.integers(1, 64), scripts, st.none() | st.integers(0, 3)),
    min_size=2,
    max_size=8,
)


@pytest.fixture
async def pair(
    database_url: str, redis_url: str, model: Model, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Running, Running]]:
    """Run two processes that share the slots, each behind a server of its own."""
    beat_often(monkeypatch)
    given = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        **model.settings,
        chat_checkpoint_seconds=0.05,
        trusted_proxies=("127.0.0.1/32",),
    )
    start = partial(running, given, timers=False, poll_seconds=0.1)
    async with start() as one, start() as other:
        await shared(one, other)
        yield one, other


@pytest.fixture
async def doors(pair: tuple[Running, Running]) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [
            f"http://127.0.0.1:{await stack.enter_async_context(listening(live.app))}"  # type: ignore[arg-type]
            for live in pair
        ]


@settings(
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(asked=bursts, dollars_micro=st.integers(1, 20_000))
async def test_a_burst_over_two_processes_never_spends_more_than_was_there(
    pair: tuple[Running, Running],
    doors: list[str],
    model: Model,
    asked: list[Asked],
    dollars_micro: int,
) -> None:
    number = next(VISITORS)
    headers = {"Origin": BASE, "X-Forwarded-For": f"198.51.{number // 250}.{number % 250 + 1}"}
    async with AsyncExitStack() as stack:
        browsers = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=door, headers=headers, timeout=30)
            )
            for door in doors
        ]
        visitor = await arrive(browsers[0], f"v{number}@example.com")
        browsers[1].cookies = browsers[0].cookies
        await grant(pair[0], visitor, dollars_micro)
        model.scripts.clear()
        model.scripts.extend(one.script for one in asked)
        streamed = list[bool]()
        async with anyio.create_task_group() as tasks:
            for place, one in enumerate(asked):
                through = replace(visitor, browser=browsers[place % 2])
                tasks.start_soon(attend, through, one, streamed)
        database, whose = pair[0].service.database, visitor.organization_id
        rows = await ended(database, len(streamed), whose)
        seen = await visitor.credits()
    assert all(row["charged"] <= row["cost"] for row in rows)
    assert seen["held"] == 0
    assert seen["balance"] == seen["available"] >= 0
    assert seen["balance"] == dollars_micro - sum(row["charged"] for row in rows)


async def attend(visitor: Visitor, asked: Asked, streamed: list[bool]) -> None:
    async with visitor.asking(maxOutputTokens=asked.most) as response:
        if response.status_code != 200:
            problem = await response.aread()
            assert response.status_code == 402, problem
            return
        streamed.append(True)
        heard = 0
        async for one in events_of(response):
            heard += one.name == "delta"
            if asked.leaves_after is not None and heard >= asked.leaves_after:
                return
