import asyncio

import pytest

from tests.runtime.counter import Add, Held, Note, Read, Refuse, counter
from tests.runtime.runtime_on_disk import running
from tests.timing import until
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import Duplicate, ShardUnavailable, TurnFailed
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots

TOO_MUCH = 10**6
"""An amount that the table refuses."""


async def test_a_reply_leaves_only_when_its_cause_is_on_disk(counters: Database) -> None:
    async with running(counters) as tested:
        tested.journal.shut()
        asked = asyncio.ensure_future(tested.ask(counter("a"), Add(1)))
        await tested.journal.arrived.wait()
        assert not asked.done()
        assert await tested.total("a") == 0
        tested.journal.reopen()
        assert await asked == 1
        assert await tested.total("a") == 1


async def test_a_read_or_a_refusal_waits_behind_the_writes_before_it(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Read())
        tested.journal.shut()
        write = asyncio.ensure_future(tested.ask(counter("a"), Add(1)))
        await tested.journal.arrived.wait()
        read = asyncio.ensure_future(tested.ask(counter("a"), Read()))
        refused = asyncio.ensure_future(tested.ask(counter("a"), Refuse()))
        await until(lambda: tested.runtime.admin.uncommitted == 3)
        assert not read.done()
        assert not refused.done()
        tested.journal.reopen()
        assert list(await asyncio.gather(write, read)) == [1, 1]
        with pytest.raises(Refused, match="at 1"):
            await refused


async def test_turns_of_many_actors_share_a_batch_in_their_order(counters: Database) -> None:
    async with running(counters) as tested:
        for n in range(100):
            await tested.ask(counter(f"{n}"), Read())
        tested.journal.shut()
        first = asyncio.ensure_future(tested.ask(counter("first"), Add(1)))
        await tested.journal.arrived.wait()
        asks = [
            asyncio.ensure_future(tested.ask(counter(f"{n % 100}"), Add(1))) for n in range(200)
        ]
        await until(lambda: tested.runtime.admin.uncommitted == 201)
        tested.journal.reopen()
        assert await first == 1
        assert await asyncio.gather(*asks) == [1] * 100 + [2] * 100
        batch = tested.journal.batches[1]
        assert len(tested.journal.batches) == 2
        assert (len(batch.actors), len(batch.turns)) == (100, 200)


@pytest.mark.parametrize(("askers", "first"), [(32, [32, 16, 16, 16, 16]), (12, [12, 8, 4, 8, 4])])
async def test_askers_who_ask_again_at_once_go_to_disk_in_two_halves(
    counters: Database, askers: int, first: list[int]
) -> None:
    async with running(counters) as tested:
        for n in range(askers):
            await tested.ask(counter(f"{n}"), Read())

        async def ask(n: int) -> list[int]:
            return [await tested.ask(counter(f"{n}"), Add(1)) for _ in range(6)]

        assert await asyncio.gather(*map(ask, range(askers))) == [[*range(1, 7)]] * askers
        assert [len(batch.turns) for batch in tested.journal.batches][:5] == first


@pytest.mark.parametrize("guilty", [Add(TOO_MUCH), Add(2**70), Add(1, "a\0b"), Add(1, "\ud800")])
async def test_one_bad_turn_in_a_batch_of_64_fails_alone(counters: Database, guilty: Add) -> None:
    async with running(counters) as tested:
        for n in range(64):
            await tested.ask(counter(f"{n}"), Read())
        asks = [tested.ask(counter(f"{n}"), guilty if n == 41 else Add(1)) for n in range(64)]
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(answered.pop(41), TurnFailed)
        assert answered == [1] * 63
        assert await tested.ask(counter("41"), Add(1)) == 1
        assert await tested.count("actor_journal") == 64


async def test_bad_turns_do_not_wear_out_the_good_ones_behind_them(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Read())
        asks = [tested.ask(counter("a"), Add(TOO_MUCH)) for _ in range(12)]
        answered = await asyncio.gather(
            *asks, tested.ask(counter("a"), Add(5)), return_exceptions=True
        )
        assert answered.pop() == 5
        assert all(isinstance(error, TurnFailed) for error in answered)


async def test_a_message_with_a_claim_takes_effect_once(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter("a"), Note("delivery")) for _ in range(20)]
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert sum(isinstance(error, Duplicate) for error in answered) == 19
        assert await tested.count("test_entries") == 1
        with pytest.raises(Duplicate):
            await tested.ask(counter("a"), Note("delivery"))


async def test_a_duplicate_does_not_void_its_neighbours(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Note("old"))
        tested.journal.shut()
        gate = asyncio.ensure_future(tested.ask(counter("gate"), Add(1)))
        await tested.journal.arrived.wait()
        messages = [Add(1), Note("old"), Add(1), Note("new"), Add(1)]
        asks = [asyncio.ensure_future(tested.ask(counter("a"), message)) for message in messages]
        await until(lambda: tested.runtime.admin.uncommitted == 6)
        wakes = tested.kind.loads
        tested.journal.reopen()
        answered = await asyncio.gather(*asks, return_exceptions=True)
        await gate
        assert isinstance(answered.pop(1), Duplicate)
        assert answered == [1, 2, 2, 3]
        assert tested.kind.loads == wakes
        assert await tested.versions("a") == [1, 2, 3, 4, 5]


async def test_a_duplicate_that_changed_the_state_sends_its_followers_back(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        assert await tested.ask(counter("a"), Add(1, claim="paid")) == 1
        asks = [tested.ask(counter("a"), Add(100, claim="paid")), tested.ask(counter("a"), Add(5))]
        answered = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(answered[0], Duplicate)
        assert answered[1] == 6
        assert await tested.total("a") == 6


async def test_many_duplicates_do_not_wear_out_the_turns_behind_them(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Read())
        asks = [tested.ask(counter("a"), Add(1, claim="paid")) for _ in range(12)]
        answered = await asyncio.gather(
            *asks, tested.ask(counter("a"), Add(100)), return_exceptions=True
        )
        assert answered.pop() == 101
        assert sum(isinstance(error, Duplicate) for error in answered) == 11


async def test_an_actor_that_another_writer_moved_reads_itself_back(counters: Database) -> None:
    async with running(counters) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        await counters.execute("UPDATE actors SET version = version + 1 WHERE key = 'a'")
        await counters.execute("UPDATE test_counters SET total = 50 WHERE key = 'a'")
        asks = [tested.ask(counter("a"), Add(1)) for _ in range(3)]
        assert await asyncio.gather(*asks) == [51, 52, 53]
        assert await tested.total("a") == 53
        assert tested.runtime.telemetry.counters["commits_stale"] == 1


async def test_an_owner_with_a_stale_epoch_can_neither_commit_nor_answer(
    counters: Database,
) -> None:
    async with running(counters) as old:
        await old.ask(counter("a"), Add(1))
        async with running(counters) as new:
            assert await new.ask(counter("a"), Add(10)) == 11
            with pytest.raises(ShardUnavailable, match="another process owns"):
                await old.ask(counter("a"), Add(100))
            with pytest.raises(ShardUnavailable, match="another process owns"):
                await old.ask(counter("a"), Read())
            assert await new.ask(counter("a"), Add(10)) == 21


async def test_what_waits_in_front_of_an_actor_that_is_lost_is_refused(counters: Database) -> None:
    async with running(counters) as old:
        await old.ask(counter("a"), Add(1))
        old.journal.shut()
        await slots.claim(counters, "another")
        write = asyncio.ensure_future(old.ask(counter("a"), Add(1)))
        await old.journal.arrived.wait()
        held = asyncio.ensure_future(old.ask(counter("a"), Held("gate", 1)))
        await old.kind.entered["gate"].wait()
        read = asyncio.ensure_future(old.ask(counter("a"), Read()))
        await until(lambda: old.runtime.admin.waiting == 1)
        old.journal.reopen()
        old.kind.gates["gate"].set()
        answered = await asyncio.gather(write, held, read, return_exceptions=True)
        assert all(isinstance(error, ShardUnavailable) for error in answered), answered
        with pytest.raises(ShardUnavailable):
            await old.ask(counter("a"), Read())


async def test_the_journal_numbers_the_turns_of_an_actor_without_a_gap(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter(f"{n % 3}"), Add(1, entry="e")) for n in range(60)]
        await asyncio.gather(*asks)
        for key in "012":
            assert await tested.versions(key) == list(range(1, 21))
