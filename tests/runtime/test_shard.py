from tests.runtime.counter import Add, Read, counter
from tests.runtime.town import settled, town
from tolsey.storage.database import Database


async def test_two_processes_share_the_slots_and_answer_for_all_of_them(
    database: Database, redis_url: str
) -> None:
    async with town(database, redis_url) as here, here.join("a") as a, here.join("b") as b:
        await settled(a, b)
        assert 300 < len(a.runtime.epochs) < 724
        for n in range(40):
            assert await a.ask(counter(f"k{n}"), Add(n)) == n
            assert await b.ask(counter(f"k{n}"), Add(1)) == n + 1
            assert await a.ask(counter(f"k{n}"), Read()) == n + 1
        assert a.runtime.telemetry.counters["bus_sent"] > 10
