import asyncio
from collections.abc import Iterable, Mapping, Sequence

import pytest

from tests.runtime.counter import Add, Counter, CounterState, Held, Read, Wait, counter
from tests.runtime.runtime_on_disk import running
from tests.timing import until
from tolsey.runtime.errors import TurnFailed
from tolsey.runtime.turns.mailbox import Cell
from tolsey.storage.database import Database

LARGE = "a" * 600
"""The key is part of the state: large enough to be worth its bytes."""


async def test_wake_ups_of_one_moment_are_one_query(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter(f"{n}"), Add(n)) for n in range(200)]
        assert await asyncio.gather(*asks) == list(range(200))
        assert tested.kind.loads == 1
        assert tested.runtime.admin.awake == 200


async def test_many_messages_to_one_sleeping_actor_wake_it_once(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter("a"), Add(1)) for _ in range(100)]
        assert await asyncio.gather(*asks) == list(range(1, 101))
        assert tested.kind.loads == 1


async def test_an_actor_put_to_sleep_wakes_with_what_is_on_disk(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(3))
        assert tested.runtime.scheduler.passivate(
            cell(tested.runtime.scheduler.cells.values(), "a")
        )
        assert tested.runtime.admin.awake == 0
        assert await tested.ask(counter("a"), Add(1)) == 4
        assert tested.kind.loads == 2


async def test_an_actor_with_something_in_front_of_it_is_not_put_to_sleep(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        scheduler = tested.runtime.scheduler
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate")))
        await tested.kind.entered["gate"].wait()
        assert not scheduler.passivate(cell(tested.runtime.scheduler.cells.values(), "a"))
        tested.kind.gates["gate"].set()
        await held
        tested.journal.shut()
        write = asyncio.ensure_future(tested.ask(counter("a"), Add(1)))
        await tested.journal.arrived.wait()
        assert not scheduler.passivate(cell(tested.runtime.scheduler.cells.values(), "a"))
        tested.journal.reopen()
        await write
        parked = asyncio.ensure_future(tested.ask(counter("a"), Wait("n")))
        await until(lambda: bool(tested.runtime._parking))
        assert not scheduler.passivate(cell(tested.runtime.scheduler.cells.values(), "a"))
        parked.cancel()
        await until(lambda: not tested.runtime._parking)
        assert scheduler.passivate(cell(tested.runtime.scheduler.cells.values(), "a"))


async def test_a_cold_actor_keeps_its_state_as_bytes_and_answers_without_the_disk(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        await tested.ask(counter(LARGE), Add(3))
        sleeper = cell(tested.runtime.scheduler.cells.values(), LARGE)
        sleeper.cool()
        assert sleeper.state is sleeper.committed is None
        assert isinstance(sleeper.cold, bytes)
        assert await tested.ask(counter(LARGE), Add(1)) == 4
        assert await tested.versions(LARGE) == [1, 2]
        assert tested.kind.loads == 1


async def test_idle_actors_cool_and_then_go(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.runtime.turns.scheduler.SWEEP_SECONDS", 0.01)
    async with running(counters, cold_seconds=0.02, idle_seconds=0.2) as tested:
        await tested.ask(counter(LARGE), Add(3))
        sleeper = cell(tested.runtime.scheduler.cells.values(), LARGE)
        await until(lambda: not sleeper.hot)
        assert tested.runtime.admin.awake == 1
        await until(lambda: tested.runtime.admin.awake == 0)
        assert await tested.ask(counter(LARGE), Read()) == 3


async def test_a_small_state_is_left_as_it_is(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(3))
        sleeper = cell(tested.runtime.scheduler.cells.values(), "a")
        sleeper.cool()
        assert sleeper.hot
        assert await tested.ask(counter("a"), Read()) == 3
        looked_at = sleeper.cold
        assert looked_at == b""
        assert await tested.ask(counter("a"), Add(1)) == 4
        assert sleeper.cold is None
        assert tested.kind.loads == 1


async def test_an_idle_actor_has_no_task(counters: Database) -> None:
    async with running(counters) as tested:
        before = len(asyncio.all_tasks())
        await asyncio.gather(*(tested.ask(counter(f"{n}"), Read()) for n in range(500)))
        await until(lambda: len(asyncio.all_tasks()) <= before)
        assert tested.runtime.admin.awake == 500


async def test_an_actor_that_cannot_be_read_fails_alone(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Counter.load

    async def strict(self: Counter, keys: Sequence[str]) -> Mapping[str, CounterState]:
        if "bad" in keys:
            raise ValueError("a row that makes no sense")
        return await load(self, keys)

    monkeypatch.setattr(Counter, "load", strict)
    async with running(counters) as tested:
        asks = [tested.ask(counter(key), Add(1)) for key in ("one", "bad", "two")]
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(answered.pop(1), TurnFailed)
        assert answered == [1, 1]


def cell(cells: Iterable[Cell], key: str) -> Cell:
    return next(found for found in cells if found.id.key == key)
