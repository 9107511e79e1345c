import asyncio

import pytest

from tests.runtime.counter import Add, Counter, Held, Read, counter
from tests.runtime.runtime_on_disk import running
from tests.timing import until
from tolsey.runtime.errors import Overloaded, ShardUnavailable
from tolsey.runtime.turns.mailbox import SLOTS, slot_of
from tolsey.storage.database import Database


def test_a_key_always_has_the_same_slot() -> None:
    assert slot_of("123456789") == 0xCBF43926 % 1024  # the check value of CRC-32
    assert {slot_of(f"key {n}") for n in range(50_000)} == set(range(SLOTS))


async def test_a_full_mailbox_refuses_at_once(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "mailbox", 8)
    async with running(counters) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate")))
        await tested.kind.entered["gate"].wait()
        asks = [asyncio.ensure_future(tested.ask(counter("a"), Add(1))) for _ in range(8)]
        await until(lambda: tested.runtime.admin.waiting == 8)
        with pytest.raises(Overloaded, match="the mailbox") as refused:
            await tested.ask(counter("a"), Add(1))
        assert refused.value.retry_after > 0
        assert await tested.ask(counter("b"), Add(1)) == 1
        tested.kind.gates["gate"].set()
        await held
        assert await asyncio.gather(*asks) == list(range(1, 9))
        assert await tested.ask(counter("a"), Add(1)) == 9


async def test_turns_that_are_not_on_disk_count_against_their_actor(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "mailbox", 2)
    async with running(counters) as tested:
        await tested.ask(counter("a"), Read())
        tested.journal.shut()
        asks = [asyncio.ensure_future(tested.ask(counter("a"), Add(1))) for _ in range(20)]
        await tested.journal.arrived.wait()
        assert tested.runtime.admin.uncommitted == 8
        tested.journal.reopen()
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert answered[:8] == list(range(1, 9))
        assert all(isinstance(error, Overloaded) for error in answered[8:])


async def test_a_process_over_its_bound_refuses_whether_turns_wait_or_commits_do(
    counters: Database,
) -> None:
    async with running(counters, limit=8) as tested:
        for n in range(32):
            await tested.ask(counter(f"{n}"), Read())
        tested.journal.shut()
        asks = [asyncio.ensure_future(tested.ask(counter(f"{n}"), Add(1))) for n in range(32)]
        await tested.journal.arrived.wait()
        assert tested.runtime.admin.uncommitted == 8
        with pytest.raises(Overloaded, match="the process"):
            await tested.ask(counter("asleep"), Add(1))
        assert await tested.ask(counter("31"), Read()) == 0
        tested.journal.reopen()
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert answered.count(1) == 8


async def test_a_process_that_stops_refuses_what_is_new_and_answers_what_it_took(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Read())
        tested.journal.shut()
        asks = [asyncio.ensure_future(tested.ask(counter("a"), Add(1))) for _ in range(50)]
        asks += [asyncio.ensure_future(tested.ask(counter("b"), Add(1))) for _ in range(50)]
        await tested.journal.arrived.wait()
        await until(lambda: tested.runtime.admin.uncommitted == 100)
        drained = asyncio.ensure_future(tested.runtime.drain())
        await asyncio.sleep(0)
        for key in ("a", "b", "asleep"):
            with pytest.raises(ShardUnavailable, match="stopping"):
                await tested.ask(counter(key), Add(1))
        tested.journal.reopen()
        await drained
        assert await asyncio.gather(*asks) == [*range(1, 51), *range(1, 51)]
        assert (await tested.total("a"), await tested.total("b")) == (50, 50)


async def test_a_turn_that_gathers_is_finished_before_a_process_stops(counters: Database) -> None:
    async with running(counters) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate", 4)))
        await tested.kind.entered["gate"].wait()
        drained = asyncio.ensure_future(tested.runtime.drain())
        await asyncio.sleep(0)
        tested.kind.gates["gate"].set()
        await drained
        assert await held == 4
        assert await tested.total("a") == 4


async def test_a_process_that_is_told_to_hurry_refuses_what_it_cannot_finish(
    counters: Database,
) -> None:
    async with running(counters, grace_seconds=0.05) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("never")))
        await tested.kind.entered["never"].wait()
        behind = asyncio.ensure_future(tested.ask(counter("a"), Add(1)))
        await until(lambda: tested.runtime.admin.waiting == 1)
        await tested.runtime.drain()
        answered = await asyncio.gather(held, behind, return_exceptions=True)
        assert all(isinstance(error, ShardUnavailable) for error in answered)
        assert await tested.total("a") == 0
