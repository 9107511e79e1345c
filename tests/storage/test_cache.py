import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from tolsey.storage.cache import MOST_AT_ONCE, Cache, CacheUnavailable, Script


@pytest.fixture
async def cache(redis_url: str) -> AsyncIterator[Cache]:
    made = Cache(redis_url)
    yield made
    await made.close()


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    made = redis.asyncio.from_url(redis_url)
    yield made
    await made.aclose()


async def test_all_who_ask_at_once_get_their_own_answer_over_one_connection(
    cache: Cache, server: redis.asyncio.Redis
) -> None:
    echo = Script("return {KEYS[1], ARGV[1]}")
    await cache.run(echo, ["key"], [0])
    before = (await server.info())["total_connections_received"]
    asked = [cache.run(echo, [f"key-{n}"], [n]) for n in range(MOST_AT_ONCE)]
    answers = await asyncio.gather(*asked)
    assert answers == [[f"key-{n}", str(n)] for n in range(MOST_AT_ONCE)]
    assert (await server.info())["total_connections_received"] == before


async def test_more_than_one_write_takes_are_answered_too(cache: Cache) -> None:
    echo = Script("return ARGV[1]")
    asked = [cache.run(echo, [], [n]) for n in range(2 * MOST_AT_ONCE + 1)]
    assert await asyncio.gather(*asked) == [str(n) for n in range(2 * MOST_AT_ONCE + 1)]


async def test_scripts_of_different_kinds_run_in_the_order_they_were_asked(cache: Cache) -> None:
    append, read = (
        Script("return redis.call('APPEND', KEYS[1], ARGV[1])"),
        Script("return redis.call('GET', KEYS[1])"),
    )
    asked = [
        cache.run(append, ["text"], ["a"]),
        cache.run(read, ["text"], []),
        cache.run(append, ["text"], ["b"]),
        cache.run(read, ["text"], []),
    ]
    assert await asyncio.gather(*asked) == [1, "a", 2, "ab"]


async def test_a_script_that_the_server_forgot_is_brought_along_for_all_who_ask(
    cache: Cache, server: redis.asyncio.Redis
) -> None:
    count = Script("return redis.call('INCR', KEYS[1])")
    assert await cache.run(count, ["calls"], []) == 1
    await server.script_flush()
    assert await asyncio.gather(*(cache.run(count, ["calls"], []) for _ in range(3))) == [2, 3, 4]


async def test_connections_that_ended_while_nobody_asked_are_made_anew(
    cache: Cache, server: redis.asyncio.Redis
) -> None:
    echo = Script("return ARGV[1]")
    asked = [cache.run(echo, [], ["before"]) for _ in range(2 * MOST_AT_ONCE)]
    assert set(await asyncio.gather(*asked)) == {"before"}
    await server.client_kill_filter(_type="normal", skipme=True)
    assert await cache.run(echo, [], ["after"]) == "after"


async def test_who_leaves_while_waiting_takes_nobodys_answer_along(cache: Cache) -> None:
    echo = Script("return ARGV[1]")
    leaving, staying = (asyncio.create_task(cache.run(echo, [], [who])) for who in ("one", "two"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == "two"
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_a_script_that_fails_is_a_cache_that_is_away_for_all_who_asked_with_it(
    cache: Cache,
) -> None:
    broken, echo = Script("return redis.call('NO SUCH COMMAND')"), Script("return ARGV[1]")
    asked = [cache.run(broken, [], []), cache.run(echo, [], ["other"])]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in answers] == [CacheUnavailable, CacheUnavailable]
    assert cache.is_resting
