"""Deadlines, on a loop whose time moves by hand."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, cast

from tolsey.runtime.turns.wheel import TICK_SECONDS, Wheel


class Timer:
    def __init__(self, timers: dict[int, tuple[float, Callable[[], None]]], number: int) -> None:
        self._timers = timers
        self._number = number

    def cancel(self) -> None:
        self._timers.pop(self._number, None)


class Loop:
    """Keeps time and timers as a loop does, and counts how often it was woken."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.woken = 0
        self._numbers = count()
        self._timers: dict[int, tuple[float, Callable[[], None]]] = {}

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        number = next(self._numbers)
        self._timers[number] = (when, call)
        return Timer(self._timers, number)

    def go_to(self, until: float) -> None:
        while due := sorted(
            (when, one) for one, (when, _) in self._timers.items() if when <= until
        ):
            self.now, number = due[0]
            self.woken += 1
            self._timers.pop(number)[1]()
        self.now = until


def made() -> tuple[Loop, Wheel]:
    loop = Loop()
    return loop, Wheel(cast("asyncio.AbstractEventLoop", loop))


async def test_each_fails_at_most_a_tick_after_its_deadline_in_whatever_order_they_came() -> None:
    loop, wheel = made()
    futures: dict[float, asyncio.Future[Any]] = {}
    for seconds in (5.0, 0.3, 0.35, 2.0, 0.001, 0.06):
        futures[seconds] = asyncio.get_running_loop().create_future()
        wheel.add(futures[seconds], loop.now + seconds)
    start = loop.now
    for seconds, future in sorted(futures.items()):
        loop.go_to(start + seconds - 0.0005)
        assert not future.done()
        loop.go_to(start + seconds + 1.001 * TICK_SECONDS)
        assert future.exception() is not None


async def test_who_has_an_answer_or_waits_for_long_wakes_nobody_meanwhile() -> None:
    loop, wheel = made()
    answered, waiting = (asyncio.get_running_loop().create_future() for _ in range(2))
    bucket = wheel.add(answered, loop.now + 5)
    answered.set_result(None)
    del bucket[answered]
    wheel.add(waiting, loop.now + 60)
    loop.go_to(loop.now + 59)
    assert loop.woken <= 1
    loop.go_to(loop.now + 2)
    assert waiting.exception() is not None


async def test_who_is_answered_in_time_wakes_nobody_however_many_ask_one_after_another() -> None:
    loop, wheel = made()
    for _ in range(500):
        future = asyncio.get_running_loop().create_future()
        bucket = wheel.add(future, loop.now + 5)
        loop.go_to(loop.now + TICK_SECONDS)
        future.set_result(None)
        del bucket[future]
    waiting = asyncio.get_running_loop().create_future()
    wheel.add(waiting, loop.now + 5)
    assert loop.woken <= 3
    loop.go_to(loop.now + 5 + 1.001 * TICK_SECONDS)
    assert waiting.exception() is not None
