import asyncio
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.runtime.counter import Add, Claim, Entry, Note, Read, counter
from tests.runtime.proxy import Proxy
from tests.runtime.runtime_on_disk import running
from tests.seeds import seeds
from tests.timing import until
from tolsey.runtime.errors import Duplicate, ShardUnavailable
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.records.runtime.turns import ActorPart, Batch, TurnPart
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.commit_statement import MARK
from tolsey.storage.runtime.journal import Journal


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(database_url).standing() as standing:
        yield standing


async def test_a_commit_whose_answer_is_swallowed_counts_once(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        proxy.swallow = True
        assert await tested.ask(counter("a"), Add(10)) == 11
        assert proxy.swallowed.is_set()
        assert await tested.ask(counter("a"), Add(100)) == 111
        assert await tested.versions("a") == [1, 2, 3]
        assert tested.runtime.telemetry.counters["commits_unknown"] == 1


async def test_every_turn_of_a_batch_of_unknown_fate_counts_once(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        prepared = [tested.ask(counter(f"{n}"), Add(1, entry="prepared")) for n in range(20)]
        await asyncio.gather(*prepared)
        proxy.swallow = True
        asks = [tested.ask(counter(f"{n % 20}"), Add(1, entry="e")) for n in range(60)]
        assert sorted(await asyncio.gather(*asks)) == sorted([2, 3, 4] * 20)
        assert await tested.count("test_entries") == 80
        assert tested.runtime.telemetry.counters["commits_unknown"] == 1


async def test_a_read_between_two_writes_of_a_settled_batch_answers_in_its_place(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        prepared = [tested.ask(counter("a"), Add(1)) for _ in range(2)]
        await asyncio.gather(*prepared)
        proxy.swallow = True
        asks = [tested.ask(counter("a"), message) for message in (Add(1), Read(), Add(1), Read())]
        assert await asyncio.gather(*asks) == [3, 3, 4, 4]


async def test_a_repeat_in_a_batch_of_unknown_fate_is_still_a_repeat(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        prepared = [tested.ask(counter("a"), Note("n")), tested.ask(counter("a"), Add(1))]
        await asyncio.gather(*prepared)
        proxy.swallow = True
        asks = [tested.ask(counter("a"), Note("n")), tested.ask(counter("a"), Add(1))]
        told = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(told[0], Duplicate)
        assert told[1] == 2


async def test_a_connection_cut_between_two_commits_costs_nothing(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        await proxy.cut()
        assert await tested.ask(counter("a"), Add(1)) == 2


@pytest.fixture
def endless_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no statement end because it takes long: a connection is given up for being silent, or never."""
    monkeypatch.setattr("tolsey.storage.runtime.journal.STATEMENT_SECONDS", 3_600)


@pytest.mark.usefixtures("endless_statements")
async def test_a_connection_that_passes_nothing_on_is_replaced(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        proxy.hang()
        assert await tested.ask(counter("a"), Add(10)) == 11
        assert await tested.versions("a") == [1, 2]


@pytest.mark.usefixtures("endless_statements")
async def test_a_commit_whose_answer_never_comes_counts_once(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        proxy.silent = True
        asked = asyncio.ensure_future(tested.ask(counter("a"), Add(10)))
        await proxy.swallowed.wait()
        proxy.hang()
        proxy.silent = False
        assert await asked == 11
        assert await tested.versions("a") == [1, 2]


async def test_a_statement_that_is_slow_is_waited_for(
    counters: Database, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.runtime.journal.LATE_SECONDS", 0.05)
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        async with counters.transaction() as tx:
            await tx.execute("SELECT * FROM actors WHERE key = 'a' FOR UPDATE")
            asked = asyncio.ensure_future(tested.ask(counter("a"), Add(10)))
            await until(lambda: proxy.connections > 3)  # it was asked after some times
            assert tested.runtime.admin.commit_seconds > 0
        assert await asked == 11
        assert tested.runtime.telemetry.counters["commits_unknown"] == 0
        await until(lambda: tested.runtime.admin.commit_seconds == 0)


async def test_a_database_out_of_reach_refuses_and_serves_again_when_it_is_back(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        await tested.ask(counter("a"), Read())
        proxy.refuse = 1
        with pytest.raises(ShardUnavailable) as refused:
            await tested.ask(counter("a"), Add(1))
        assert refused.value.outcome == "none"
        assert await tested.ask(counter("a"), Add(1)) == 1


async def test_a_driver_that_lost_its_place_has_lost_its_connection(counters: Database) -> None:
    with pytest.raises(StorageUnavailable):
        async with counters.transaction():
            raise asyncpg.InternalClientError("cannot switch to state 12")
    assert await counters.fetch("SELECT 1")


@pytest.mark.parametrize("seed", seeds(3, first=1))
async def test_backends_that_die_at_any_moment_lose_and_double_nothing(
    counters: Database, seed: int
) -> None:
    luck = random.Random(seed)  # noqa: S311 - it is to be predictable
    async with running(counters) as tested:
        written: list[int] = []

        async def client(key: str) -> None:
            for _ in range(40):
                reply = await tested.ask(counter(key), Add(1, entry="e"))
                written.append(reply)

        async def murderer() -> None:
            for _ in range(8):
                before = len(written)
                target = before + luck.randint(5, 25)
                await until(lambda target=target: len(written) >= target or len(written) == 200)
                await counters.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE starts_with(query, $1) AND pid <> pg_backend_pid()",
                    MARK,
                )

        await asyncio.gather(murderer(), *(client(f"{n}") for n in range(5)))
        assert await tested.count("test_entries") == len(written) == 200
        assert [await tested.total(f"{n}") for n in range(5)] == [40] * 5
        assert await tested.versions("0") == list(range(1, 41))
        assert tested.runtime.telemetry.counters["commits_unknown"] > 0


async def test_a_statement_that_still_runs_when_its_connection_is_lost_is_ended(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        async with counters.transaction() as tx:
            await tx.execute("SELECT * FROM actors WHERE key = 'a' FOR UPDATE")
            asked = asyncio.ensure_future(tested.ask(counter("a"), Add(10)))
            await until(lambda: waits_for_a_lock(counters))
            await proxy.cut()
            await until(lambda: waits_for_a_lock(counters, 0))
        assert await asked == 11
        assert await tested.versions("a") == [1, 2]


async def test_a_statement_that_still_runs_is_ended_even_when_the_first_try_to_settle_fails(
    counters: Database, proxy: Proxy
) -> None:
    async with running(counters, journal_on=Database(proxy.url)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 1
        async with counters.transaction() as tx:
            await tx.execute("SELECT * FROM actors WHERE key = 'a' FOR UPDATE")
            asked = asyncio.ensure_future(tested.ask(counter("a"), Add(10)))
            await until(lambda: waits_for_a_lock(counters))
            proxy.refuse = 1
            await proxy.cut()
            await until(lambda: tested.runtime.telemetry.counters["wakes"] == 2)
        assert await asked == 11
        assert await tested.versions("a") == [1, 2]


async def test_a_message_that_the_next_owner_took_is_not_mistaken_for_ours(
    counters: Database,
) -> None:
    journal = Journal(counters)
    old = await slots.claim(counters, "old")
    new = await slots.claim(counters, "new")
    batches = []
    for epochs in (old, new):
        part = ActorPart("counter", "a", 7, epochs[7], 0)
        records = (Entry("a", "e", 1), Claim("a", "c"))
        turn = TurnPart(0, "delivery", "Add", voids=False, records=records)
        batches.append(Batch(actors=[part], turns=[turn]))
    try:
        assert (await journal.write(batches[0])).fenced == {0}
        assert (await journal.write(batches[1])).fenced == frozenset()
        assert await journal.settle(batches[1]) == [True]
        assert await journal.settle(batches[0]) == [False]
    finally:
        await journal.close()


async def waits_for_a_lock(database: Database, count: int = 1) -> bool:
    row = await database.fetchrow(
        "SELECT count(*) AS n FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return row is not None and row["n"] == count
