import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.runtime.counter import (
    Add,
    Fetch,
    Fetched,
    FetchNumber,
    Note,
    Read,
    Send,
    Transfer,
    counter,
)
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.decision import Perform, Tell
from tolsey.runtime.messages import Message
from tolsey.runtime.outbox.rows import row_of
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.runtime import dead_letters, slots
from tolsey.storage.runtime.dead_letters import WhichLetters
from tolsey.storage.runtime.outbox import Outbox

QUICK = (0.0, 0.0, 0.0, 0.0)


async def settled(tested: RuntimeOnDisk) -> None:
    async def empty() -> bool:
        return await tested.count("outbox") == 0

    await until(empty)


class World:
    """A platform that answers with how often it was called, after failing some times."""

    def __init__(self, failures: int = 0, answer: Sequence[Tell] | None = None) -> None:
        self.calls = 0
        self.failures = failures
        self.answer = answer

    async def fetch(self, call: FetchNumber) -> Message[Any] | Sequence[Tell] | None:
        del call
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("the platform hung up")
        return Fetched(self.calls) if self.answer is None else self.answer


async def test_a_tell_takes_effect_once_and_leaves_the_outbox(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter("a"), Transfer("b", 2)) for _ in range(50)]
        await asyncio.gather(*asks)
        await settled(tested)
        assert await tested.ask(counter("b"), Read()) == 100
        assert (await tested.total("a"), await tested.total("b")) == (-100, 100)
        assert len(await tested.versions("b")) == 50


async def test_a_tell_whose_sender_died_is_delivered_by_the_next_process(
    counters: Database,
) -> None:
    async with running(counters, poll_seconds=60) as tested:
        later = datetime.now(UTC) + timedelta(milliseconds=20)
        await tested.ask(counter("a"), Send("b", 5, "", later))
    async with running(counters) as tested:
        await settled(tested)
        assert await tested.total("b") == 5


async def test_a_row_that_is_delivered_twice_takes_effect_once(counters: Database) -> None:
    async with running(counters, poll_seconds=60) as tested:
        await tested.runtime.accept(counter("a"), Add(7), id="delivery")
        await settled(tested)
        row = tested.runtime._dispatcher
        assert await tested.count("outbox") == 0
        await tested.ask(counter("b"), Send("a", 1, "again", datetime.now(UTC) + timedelta(days=1)))
        # Read, not taken: a poll that the commit woke may take the row at any moment from here on.
        (found,) = await counters.fetch(
            "UPDATE outbox SET due_at = now() RETURNING key, slot, kind, actor_key, name,"
            " payload::text AS payload, due_at, attempts, request_id"
        )
        waiting = OutboxRow(**dict(found) | {"due_at": None})
        assert waiting.key == "again"
        row.dispatch([waiting])
        await settled(tested)
        row.dispatch([waiting])
        await until(lambda: row.in_flight == 0)
        assert await tested.ask(counter("a"), Read()) == 8
        assert await tested.total("a") == 8


async def test_a_row_that_a_poll_read_before_its_try_failed_waits_as_that_try_said(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, tries, polled = Outbox.due, 0, asyncio.Event()

    async def fetch(_: FetchNumber) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionError("the platform hung up")

    async def read_meanwhile(outbox: Outbox, *asked: Any) -> list[OutboxRow]:
        rows = await due(outbox, *asked)
        if tries:
            polled.set()
        elif rows:
            tested.runtime.dispatch([replace(row, due_at=None) for row in rows])
            await until(lambda: tested.runtime.admin.effects_in_flight == 0)
            tested.runtime._dispatcher.wake()
        return rows

    monkeypatch.setattr(Outbox, "due", read_meanwhile)
    handlers: Any = {FetchNumber: fetch}
    async with running(counters, handlers=handlers, backoff_seconds=(3600.0,)) as tested:
        effect = Perform(FetchNumber("z"), key="fetch")
        await Outbox(counters).add((row_of(effect, counter("z"), "", form="1"),))
        await polled.wait()
        await until(lambda: tested.runtime.admin.effects_in_flight == 0)
        assert tries == 1


async def test_an_accepted_message_is_kept_and_a_repeat_is_told(counters: Database) -> None:
    async with running(counters) as tested:
        tested.runtime.scheduler.pause(counter("a"))
        told = [await tested.runtime.accept(counter("a"), Note("n"), id="one") for _ in range(3)]
        assert told == [True, False, False]
        tested.runtime.scheduler.resume(counter("a"))
        await settled(tested)
        assert await tested.runtime.accept(counter("a"), Note("n"), id="one")
        await settled(tested)
        assert await tested.count("test_entries") == 1
        assert await tested.count("dead_letters") == 0


async def test_a_tell_under_a_key_changes_nothing_while_one_of_that_key_waits(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        later = datetime.now(UTC) + timedelta(hours=1)
        await tested.ask(counter("a"), Send("b", 5, "reminder", later))
        await tested.ask(counter("a"), Send("b", 7, "reminder"))
        await tested.ask(counter("a"), Send("c", 1, "other"))
        await until(lambda: on_disk(tested, "c", 1))
        assert await tested.total("b") == 0
        await counters.execute("UPDATE outbox SET due_at = now()")
        await settled(tested)
        assert await tested.total("b") == 5


async def test_what_follows_under_a_key_starts_without_a_look_at_the_outbox(
    counters: Database,
) -> None:
    async with running(counters, poll_seconds=60) as tested:
        polls = tested.runtime.telemetry.counters
        await until(lambda: polls["outbox_polls"] == 1)
        for n in range(20):
            await tested.ask(counter("a"), Send("b", 1, f"key {n}"))
        await until(lambda: on_disk(tested, "b", 20))
        assert polls["outbox_polls"] == 1


async def test_of_two_tells_under_a_key_in_one_batch_the_one_on_disk_takes_effect(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        await asyncio.gather(*(tested.ask(counter(key), Read()) for key in "ac"))
        tested.journal.shut()
        other = asyncio.ensure_future(tested.ask(counter("other"), Add(1)))
        await tested.journal.arrived.wait()
        sends = [
            asyncio.ensure_future(tested.ask(counter(key), Send("b", amount, "one")))
            for key, amount in (("a", 5), ("c", 7))
        ]
        await until(lambda: tested.runtime.admin.uncommitted == 3)
        tested.journal.reopen()
        await asyncio.gather(other, *sends)
        await settled(tested)
        assert len(tested.journal.batches[1].turns) == 2
        assert await tested.total("b") == 5


async def test_a_call_is_made_after_its_commit_and_its_result_comes_back(
    counters: Database,
) -> None:
    world = World()
    async with running(counters, handlers={FetchNumber: world.fetch}) as tested:
        tested.journal.shut()
        asked = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        await tested.journal.arrived.wait()
        assert world.calls == 0
        tested.journal.reopen()
        assert await asked == 1
        await settled(tested)
        assert await tested.total("z") == 1


async def test_those_who_ask_while_a_call_is_under_way_share_its_result(
    counters: Database,
) -> None:
    world = World()
    async with running(counters, handlers={FetchNumber: world.fetch}) as tested:
        await tested.ask(counter("z"), Read())
        for _ in range(20):
            told = await asyncio.gather(*(tested.ask(counter("z"), Fetch()) for _ in range(5)))
            assert len(set(told)) == 1
        assert world.calls <= 40


async def test_a_call_that_is_wanted_again_while_its_result_commits_is_made_again(
    counters: Database,
) -> None:
    called, answer = asyncio.Event(), asyncio.Event()
    numbers = iter((1, 2))

    async def fetch(call: FetchNumber) -> Fetched:
        del call
        called.set()
        await answer.wait()
        return Fetched(next(numbers))

    async with running(counters, handlers={FetchNumber: fetch}) as tested:
        first = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        await called.wait()
        tested.journal.shut()
        other = asyncio.ensure_future(tested.ask(counter("other"), Add(1)))
        await tested.journal.arrived.wait()
        answer.set()
        await until(lambda: tested.runtime.admin.uncommitted == 2)
        second = asyncio.ensure_future(tested.ask(counter("z"), Fetch(), timeout=5))
        await until(lambda: tested.runtime.admin.uncommitted == 3)
        tested.journal.reopen()
        assert list(await asyncio.gather(first, other, second)) == [1, 1, 2]


async def test_a_call_that_fails_is_tried_again(counters: Database) -> None:
    world = World(failures=3)
    handlers = {FetchNumber: world.fetch}
    async with running(counters, handlers=handlers, backoff_seconds=QUICK) as tested:
        assert await tested.ask(counter("z"), Fetch()) == 4
        assert tested.runtime.telemetry.counters["effects_failed"] == 3


async def test_retries_wait_longer_each_time(counters: Database) -> None:
    world = World(failures=9)
    handlers = {FetchNumber: world.fetch}
    async with running(counters, handlers=handlers, backoff_seconds=(100, 200)) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        for attempt, seconds in ((1, 100), (2, 200)):
            await until(lambda attempt=attempt: attempted(counters, attempt))
            row = await counters.fetchrow("SELECT due_at - now() AS wait, last_error FROM outbox")
            assert row is not None
            assert seconds - 5 < row["wait"].total_seconds() <= seconds
            assert "hung up" in row["last_error"]
            await counters.execute("UPDATE outbox SET due_at = now()")
        await until(lambda: tested.runtime.telemetry.counters["dead_letters"] == 1)
        asked.cancel()


async def test_a_call_that_keeps_failing_is_buried_and_can_be_replayed(counters: Database) -> None:
    world = World(failures=5)
    handlers = {FetchNumber: world.fetch}
    async with running(counters, handlers=handlers, backoff_seconds=QUICK) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        await until(lambda: buried(tested, 1))
        assert world.calls == 5
        (dead,) = await dead_letters.listed(counters, 10, None)
        assert (dead["name"], dead["attempts"], dead["key"]) == ("FetchNumber", 5, "f:z")
        assert "hung up" in dead["error"]
        assert await tested.count("outbox") == 0
        assert await dead_letters.replay(counters, WhichLetters(id=dead["id"])) == 1
        assert await dead_letters.replay(counters, WhichLetters(id=dead["id"])) == 0
        assert await asked == 6
        assert await dead_letters.listed(counters, 10, None) == []


async def test_what_a_call_tells_to_others_takes_its_place(counters: Database) -> None:
    world = World(answer=[Tell(counter("b"), Add(3)), Tell(counter("c"), Add(4))])
    async with running(counters, handlers={FetchNumber: world.fetch}) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("z"), Fetch()))
        await until(lambda: on_disk(tested, "c", 4))
        await settled(tested)
        assert await tested.total("b") == 3
        asked.cancel()


async def test_a_message_that_its_actor_cannot_take_is_buried_and_the_actor_goes_on(
    counters: Database,
) -> None:
    async with running(counters, backoff_seconds=QUICK) as tested:
        await tested.ask(counter("a"), Send("b", 10**6))
        await tested.ask(counter("a"), Send("b", 1))
        await until(lambda: buried(tested, 1))
        assert await tested.ask(counter("b"), Read()) == 1
        assert await tested.count("outbox") == 0


async def test_a_wake_up_during_a_poll_is_not_lost(counters: Database) -> None:
    async with running(counters, poll_seconds=60) as tested:
        for n in range(30):
            await tested.runtime.post([Tell(counter("b"), Add(1), key=f"key {n}")])
        await settled(tested)
        assert await tested.total("b") == 30


async def test_rows_of_an_actor_that_another_process_owns_stay(counters: Database) -> None:
    async with running(counters) as tested:
        await slots.claim(counters, "another")
        await tested.runtime.accept(counter("a"), Add(1), id="one")
        await until(lambda: tested.runtime.telemetry.counters["commits_fenced"] > 0)
        assert await tested.count("outbox") == 1
        assert await tested.total("a") == 0


async def on_disk(tested: RuntimeOnDisk, key: str, total: int) -> bool:
    return await tested.total(key) == total


async def buried(tested: RuntimeOnDisk, count: int) -> bool:
    return await tested.count("dead_letters") == count


async def attempted(database: Database, count: int) -> bool:
    row = await database.fetchrow(
        "SELECT 1 FROM outbox WHERE attempts = $1 AND due_at > now()", count
    )
    return row is not None
