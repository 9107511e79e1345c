"""A restart is no failed attempt, and what ends the process again and again is given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.runtime.counter import (
    Add,
    Fetch,
    FetchNumber,
    Held,
    Pull,
    PullNumber,
    Read,
    Send,
    counter,
)
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.outbox.interruptions import MOST_INTERRUPTIONS, SUSPECTED_AFTER
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio


class Hanging:
    """A platform that answers nobody."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def pull(self, call: PullNumber) -> None:
        self.asked.append(call.name)
        await asyncio.Event().wait()


async def rows(database: Database) -> list[tuple[int, int]]:
    found = await database.fetch("SELECT attempts, interruptions FROM outbox ORDER BY key")
    return [(row["attempts"], row["interruptions"]) for row in found]


async def test_a_hundred_effects_outlive_ten_restarts_while_the_platform_hangs(
    counters: Database,
) -> None:
    for restart in range(10):
        platform = Hanging()
        handlers = {PullNumber: platform.pull}
        async with running(counters, handlers=handlers, grace_seconds=0.1) as tested:
            if restart == 0:
                for n in range(100):
                    await tested.ask(counter("a"), Pull(f"org {n}", f"pull {n}"))
            await until(lambda platform=platform: len(platform.asked) == 64)
        assert await rows(counters) == [(0, 0)] * 100
    row = await counters.fetchrow("SELECT count(*) AS n FROM dead_letters")
    assert row is not None
    assert row["n"] == 0


async def cut(tested: RuntimeOnDisk, stack: AsyncExitStack) -> None:
    """End a process without a word: what it would have said on its way out never reaches the disk."""

    async def silent(keys: Any) -> None:
        del keys

    tested.runtime._outbox.give_back = silent  # type: ignore[method-assign]  # a process that is killed gives nothing back
    await stack.aclose()


async def killed_at_work(counters: Database, platform: Hanging, *, seen: str = "") -> None:
    """Let a process be killed while it works on what is due."""
    stack = AsyncExitStack()
    tested = await stack.enter_async_context(
        running(counters, handlers={PullNumber: platform.pull}, grace_seconds=0.1)
    )
    await until(lambda: seen in platform.asked if seen else bool(platform.asked))
    await cut(tested, stack)


async def test_a_call_that_ends_the_process_each_time_is_given_up(counters: Database) -> None:
    async with running(counters, poll_seconds=60, handlers={PullNumber: Hanging().pull}) as tested:
        await tested.ask(counter("a"), Pull("ann", "poison"))
    for n in range(MOST_INTERRUPTIONS):
        assert await rows(counters) == [(0, n)]
        await killed_at_work(counters, Hanging())
    platform = Hanging()
    async with running(counters, handlers={PullNumber: platform.pull}) as tested:
        await until(lambda: _dead(tested, 1))
    assert platform.asked == []


async def test_a_message_that_ends_the_process_each_time_is_given_up(counters: Database) -> None:
    later = datetime.now(UTC) - timedelta(seconds=1)
    async with running(counters, poll_seconds=60) as tested:
        tested.runtime.scheduler.pause(counter("b"))
        await tested.ask(counter("a"), Send("b", 5, "poison", later))
    for n in range(MOST_INTERRUPTIONS):
        assert await rows(counters) == [(0, n)]
        stack = AsyncExitStack()
        tested = await stack.enter_async_context(_with_b_paused(counters))
        await until(lambda tested=tested: tested.runtime.admin.waiting == 1)
        await cut(tested, stack)
    async with running(counters) as tested:
        await until(lambda: _dead(tested, 1))
        assert await tested.ask(counter("b"), Read()) == 0


async def test_what_ends_processes_is_told_from_what_was_only_there(counters: Database) -> None:
    names = [f"call {n}" for n in range(6)]
    async with running(counters, poll_seconds=60, handlers={PullNumber: Hanging().pull}) as tested:
        for name in names:
            await tested.ask(counter("a"), Pull(name, name))
    for n in range(SUSPECTED_AFTER):
        assert await rows(counters) == [(0, n)] * 6
        await killed_at_work(counters, platform := Hanging(), seen=names[-1])
        assert len(platform.asked) == 6
    platform = Hanging()
    await killed_at_work(counters, platform)
    assert len(platform.asked) == 1  # one suspect at a time
    assert sorted(await rows(counters)) == [(0, SUSPECTED_AFTER)] * 5 + [(0, SUSPECTED_AFTER + 1)]

    async def answers(call: PullNumber) -> None:
        platform.asked.append(call.name)

    async with running(counters, handlers={PullNumber: answers}) as tested:
        await until(lambda: _empty(tested))
    assert sorted(platform.asked[1:]) == names


async def test_a_try_that_fails_clears_what_was_only_cut(counters: Database) -> None:
    async def fails(call: FetchNumber) -> None:
        del call
        raise ConnectionError("the platform hung up")

    handlers = {FetchNumber: fails}
    async with running(counters, handlers=handlers, backoff_seconds=(100,)) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("a"), Fetch()))
        await until(lambda: _counts(counters, (1, 0)))
        await counters.execute("UPDATE outbox SET interruptions = 5, due_at = now()")
        await until(lambda: _dead(tested, 1))
        asked.cancel()
    (dead,) = await counters.fetch("SELECT attempts, error FROM dead_letters")
    assert (dead["attempts"], "hung up" in dead["error"]) == (2, True)


async def test_a_call_that_fails_because_the_process_stops_uses_no_attempt(
    counters: Database,
) -> None:
    began = asyncio.Event()

    async def asks(call: FetchNumber) -> None:
        del call
        began.set()
        await until(lambda: tested.runtime.stopping)
        await tested.ask(counter("b"), Add(1))

    async with running(counters, grace_seconds=5, handlers={FetchNumber: asks}) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("a"), Fetch()))
        await began.wait()
    asked.cancel()
    assert await rows(counters) == [(0, 0)]


async def test_a_message_whose_turn_a_stop_cuts_off_uses_no_attempt(counters: Database) -> None:
    for _ in range(3):
        async with running(counters, grace_seconds=0.1) as tested:
            await tested.runtime.accept(counter("a"), Held("never", 1), id="held")
            await tested.kind.entered["never"].wait()
        assert await rows(counters) == [(0, 0)]


@asynccontextmanager
async def _with_b_paused(counters: Database) -> AsyncIterator[RuntimeOnDisk]:
    async with running(counters, grace_seconds=0.1) as tested:
        tested.runtime.scheduler.pause(counter("b"))
        yield tested


async def _dead(tested: RuntimeOnDisk, count: int) -> bool:
    return await tested.count("dead_letters") == count


async def _empty(tested: RuntimeOnDisk) -> bool:
    return await tested.count("outbox") == 0


async def _counts(database: Database, *wanted: tuple[int, int]) -> bool:
    return await rows(database) == list(wanted)
