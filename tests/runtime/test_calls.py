"""Calls to the outside: sent once where it must be, told once, tried as often as they say, and shown."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.runtime.counter import (
    Add,
    Fetch,
    FetchNumber,
    Order,
    Pull,
    PullNumber,
    SendOnce,
    counter,
)
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.runtime.test_restarts import cut
from tests.timing import until
from tolsey.runtime.errors import Overloaded, ShardUnavailable
from tolsey.runtime.messages import LookFirst
from tolsey.storage import operations
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.runtime import dead_letters
from tolsey.storage.runtime.dead_letters import WhichLetters


class Partner:
    """Whom something is sent to that must not be sent twice: it remembers what it took."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.tries = 0
        self.looks = 0
        self.fails: list[BaseException] = []
        self.hangs = False
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    @property
    def handlers(self) -> dict[Any, Any]:
        return {SendOnce: LookFirst(self.send, self.look)}

    async def send(self, call: SendOnce) -> Add:
        self.tries += 1
        self.asked.set()
        if self.fails:
            raise self.fails.pop(0)
        if self.hangs:
            await asyncio.Event().wait()
        self.taken.append(call.name)
        await self.answers.wait()
        return Add(1)

    async def look(self, call: SendOnce) -> Add | None:
        self.looks += 1
        return Add(1) if call.name in self.taken else None


async def test_what_was_sent_before_a_crash_is_looked_up_and_not_sent_again(
    counters: Database,
) -> None:
    partner = Partner()
    partner.answers.clear()
    stack = AsyncExitStack()
    tested = await stack.enter_async_context(
        running(counters, handlers=partner.handlers, grace_seconds=0.1)
    )
    await tested.ask(counter("a"), Order("parcel"))
    await until(lambda: partner.taken == ["parcel"])
    await cut(tested, stack)
    assert await states(counters) == [("sent", 0, 1)]
    partner.answers.set()
    async with running(counters, handlers=partner.handlers) as tested:
        await until(lambda: is_settled(tested))
        assert (partner.taken, partner.looks, await tested.total("a")) == (["parcel"], 1, 1)


async def test_what_was_never_sent_before_a_crash_is_sent_when_a_look_has_said_so(
    counters: Database,
) -> None:
    partner = Partner()
    partner.hangs = True
    stack = AsyncExitStack()
    tested = await stack.enter_async_context(
        running(counters, handlers=partner.handlers, grace_seconds=0.1)
    )
    await tested.ask(counter("a"), Order("parcel"))
    await partner.asked.wait()
    await cut(tested, stack)
    partner.hangs = False
    async with running(counters, handlers=partner.handlers) as tested:
        await until(lambda: is_settled(tested))
        assert (partner.taken, partner.looks, await tested.total("a")) == (["parcel"], 1, 1)


async def test_a_first_try_looks_nothing_up(counters: Database) -> None:
    partner = Partner()
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_settled(tested))
    assert (partner.taken, partner.looks) == (["parcel"], 0)


async def test_a_call_whose_answer_was_lost_is_unknown_until_it_is_looked_up(
    counters: Database,
) -> None:
    partner = Partner()
    partner.fails = [ConnectionError("hung up"), ConnectionError("hung up again")]
    async with running(counters, handlers=partner.handlers, poll_seconds=60) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: has_state(counters, ("unknown", 1, 0)))
        tested.runtime.slots.wake_outbox()
        await until(lambda: has_state(counters, ("unknown", 2, 0)))
        tested.runtime.slots.wake_outbox()
        await until(lambda: is_settled(tested))
    assert (partner.tries, partner.looks, partner.taken) == (3, 2, ["parcel"])


async def test_a_stop_that_cuts_a_call_uses_no_attempt_and_the_next_process_looks_first(
    counters: Database,
) -> None:
    partner = Partner()
    partner.answers.clear()
    async with running(counters, handlers=partner.handlers, grace_seconds=0.1) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: partner.taken == ["parcel"])
    assert await states(counters) == [("sent", 0, 0)]
    async with running(counters, handlers=partner.handlers) as tested:
        await until(lambda: is_settled(tested))
    assert (partner.taken, partner.looks) == (["parcel"], 1)


@pytest.mark.parametrize("error", [ShardUnavailable("its lease has ended"), Overloaded("it")])
async def test_an_actor_that_cannot_serve_a_call_now_uses_no_attempt_of_it(
    counters: Database, error: Exception
) -> None:
    partner = Partner()
    partner.fails = [error] * 8
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: has_state(counters, ("unknown", 0, 0)))
        await until(lambda: is_settled(tested))
    assert (partner.taken, partner.looks, partner.fails) == (["parcel"], 8, [])


async def test_what_an_actor_may_have_done_when_its_answer_was_lost_is_an_attempt(
    counters: Database,
) -> None:
    partner = Partner()
    partner.fails = [ShardUnavailable("that process has ended", outcome="unknown")]
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_dead(tested))  # its patience tries that not again
    assert partner.tries == 1


async def test_a_dead_call_that_is_replayed_is_looked_up_first(counters: Database) -> None:
    partner = Partner()
    partner.fails = [ConnectionError("lost")] * 4
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_dead(tested))
        partner.taken.append("parcel")
        (dead,) = await dead_letters.listed(counters, 10, None)
        assert await dead_letters.replay(counters, WhichLetters(id=dead["id"])) == 1
        await until(lambda: is_settled(tested))
        assert (partner.tries, await tested.total("a")) == (4, 1)


async def test_a_call_is_tried_as_often_as_its_patience_says(counters: Database) -> None:
    partner = Partner()
    partner.fails = [ConnectionError("away")] * 9
    async with running(counters, handlers=partner.handlers, backoff_seconds=()) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_dead(tested))
    assert partner.tries == 4


async def test_what_is_not_worth_another_try_is_given_up_at_once(counters: Database) -> None:
    partner = Partner()
    partner.fails = [PermissionError("never")]
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_dead(tested))
    assert partner.tries == 1


async def test_a_try_ends_at_its_deadline(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SendOnce, "deadline_seconds", 0.01)
    partner = Partner()
    partner.hangs = True
    async with running(counters, handlers=partner.handlers) as tested:
        await tested.ask(counter("a"), Order("parcel"))
        await until(lambda: is_dead(tested))
        (dead,) = await dead_letters.listed(counters, 10, None)
        assert "no result in 0.01 seconds" in dead["error"]


async def test_a_result_that_comes_back_twice_takes_effect_once(counters: Database) -> None:
    async def fetch(call: FetchNumber) -> Add:
        del call
        return Add(5)

    handlers = {FetchNumber: fetch}
    async with running(counters, handlers=handlers, poll_seconds=60) as tested:
        tested.journal.shut()
        asked = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        try:
            await tested.journal.arrived.wait()
            (row,) = tested.journal.batches[0].turns[0].records
            tested.journal.reopen()
            for _ in range(3):  # as when another process took it for ours to finish
                await until(lambda: is_settled(tested))
                tested.runtime.dispatch([row])
                await until(lambda: tested.runtime.admin.effects_in_flight == 0)
            assert await tested.total("z") == 5
        finally:
            asked.cancel()  # also where a planted bug is caught: nobody else hears its end


async def test_what_is_done_is_shown_for_a_day(counters: Database) -> None:
    async def answers(call: PullNumber) -> None:
        del call

    partner = Partner()
    handlers = {**partner.handlers, PullNumber: answers}
    async with running(counters, handlers=handlers) as tested:
        await tested.ask(counter("a"), Order("told by a message"))
        await tested.ask(counter("a"), Pull("org", "told to nobody"))
        await tested.ask(counter("b"), Order("of another"))
        await until(lambda: is_settled(tested))
    found = await operations.calls_of(counters, "counter", "a", 10)
    assert sorted((row["key"], row["state"], row["lane"]) for row in found) == [
        ("told by a message", "done", "platform"),
        ("told to nobody", "done", "platform"),
    ]
    sweep = retention.SWEPT["finishedCalls"]
    assert await retention.sweep(counters, sweep, 10) == 0
    await counters.execute(
        "UPDATE finished_calls SET finished_at = now() - interval '25 hours' WHERE actor_key = 'a'"
    )
    assert await retention.sweep(counters, sweep, 10) == 2
    assert await operations.calls_of(counters, "counter", "a", 10) == []


async def test_a_call_that_is_not_repeatable_needs_a_way_to_be_looked_up(
    counters: Database,
) -> None:
    with pytest.raises(TypeError, match="SendOnce"):
        async with running(counters, handlers={SendOnce: Partner().send}):
            pass


async def states(database: Database) -> list[tuple[str, int, int]]:
    rows = await database.fetch("SELECT state, attempts, interruptions FROM outbox ORDER BY key")
    return [(row["state"], row["attempts"], row["interruptions"]) for row in rows]


async def has_state(database: Database, *wanted: tuple[str, int, int]) -> bool:
    return await states(database) == list(wanted)


async def is_settled(tested: RuntimeOnDisk) -> bool:
    return await tested.count("outbox") == 0


async def is_dead(tested: RuntimeOnDisk) -> bool:
    return await tested.count("dead_letters") == 1
