"""Time passes in tests when a test says so, and what waits for it ends then and not before."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
import hypothesis
import pytest

from tests.timing import TestTime, until
from tolsey.runtime.clock import REAL_TIME, Time

LONG = 3_600.0
"""No test runs so long in real time."""

Wait = Callable[[Time], Awaitable[None]]


async def sleep(time: Time) -> None:
    await time.sleep(LONG)


async def move_on(time: Time) -> None:
    with time.move_on_after(LONG) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught


async def time_out(time: Time) -> None:
    with pytest.raises(TimeoutError):
        async with time.timeout(LONG):
            await anyio.sleep_forever()


async def second_of_every(time: Time) -> None:
    number = 0
    async for _ in time.every(5):
        number += 1
        if number == 2:
            return


async def turns() -> None:
    """Let everything take its turns that waits for no time."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("wait", [sleep, move_on, time_out])
async def test_what_waits_ends_when_its_time_has_come_and_not_before(
    wait: Wait, *, runs: bool
) -> None:
    time = TestTime(runs=runs)
    waiting = asyncio.ensure_future(wait(time))
    await turns()
    time.advance(LONG / 2)
    await turns()
    assert not waiting.done()
    time.advance(LONG / 2)
    await waiting


async def test_every_pause_is_waited_for() -> None:
    time = TestTime()
    waiting = asyncio.ensure_future(second_of_every(time))
    for _ in range(2):
        await turns()
        assert not waiting.done()
        time.advance(5)
    await waiting


@pytest.mark.parametrize("time", [TestTime(), TestTime(runs=True), REAL_TIME])
async def test_an_event_ends_a_sleep(time: Time) -> None:
    event = asyncio.Event()
    waiting = asyncio.ensure_future(time.sleep(LONG, unless=event))
    await turns()
    assert not waiting.done()
    event.set()
    await waiting


async def test_a_block_that_ends_in_time_is_left_alone() -> None:
    time = TestTime()
    with time.move_on_after(10) as scope:
        await turns()
    async with time.timeout(10) as limit:
        await turns()
    time.advance(20)
    await turns()
    assert not scope.cancelled_caught
    assert not limit.expired()


def test_a_time_that_stands_still_moves_both_its_clocks_when_told() -> None:
    time = TestTime()
    began, at = time.monotonic(), time.now()
    assert (time.monotonic(), time.now()) == (began, at)
    time.advance(90)
    assert (time.monotonic(), time.now()) == (began + 90, at + timedelta(seconds=90))


async def test_until_returns_what_it_found() -> None:
    found = [None, None, "it"]

    async def find() -> str | None:
        return found.pop(0)

    assert await until(find) == "it"


@pytest.mark.skipif("HYPOTHESIS_PROFILE" in os.environ, reason="another profile was asked for")
def test_the_gate_tries_the_same_cases_each_time() -> None:
    kept = hypothesis.settings.get_profile("gate")
    assert (kept.derandomize, kept.database) == (True, None)
    assert hypothesis.settings().derandomize
    assert not hypothesis.settings.get_profile("nightly").derandomize
