import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest

from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.runtime.redis_line import RedisLine

pytestmark = pytest.mark.anyio
PONG = [b"PONG"]


@pytest.fixture
async def line(redis_url: str) -> AsyncIterator[RedisLine]:
    opened = RedisLine(redis_url, timeout_seconds=30)
    yield opened
    opened.close()


async def test_each_of_many_at_once_gets_its_own_answers(line: RedisLine) -> None:
    async def told(number: int) -> list[bytes]:
        return await line.exchange([("ECHO", number), ("ECHO", f"{number}!")])

    found = await asyncio.gather(*(told(number) for number in range(200)))
    assert found == [[f"{number}".encode(), f"{number}!".encode()] for number in range(200)]


async def test_what_was_given_up_is_not_the_answer_to_what_is_asked_next(
    line: RedisLine, redis_url: str
) -> None:
    waits = asyncio.create_task(line.exchange([("BLPOP", "late", 0)]))
    other = RedisLine(redis_url, timeout_seconds=30)
    with anyio.fail_after(60):
        while b"blocked_clients:1" not in (await other.exchange([("INFO", "clients")]))[0]:
            await asyncio.sleep(0.01)
    waits.cancel()
    await asyncio.wait({waits})
    await other.exchange([("RPUSH", "late", "too late")])
    assert await line.exchange([("PING",)]) == PONG
    other.close()


async def test_a_connection_that_was_cut_is_told_of_and_made_again(line: RedisLine) -> None:
    (id,) = await line.exchange([("CLIENT", "ID")])
    with pytest.raises(CacheUnavailable):
        await line.exchange([("CLIENT", "KILL", "ID", id, "SKIPME", "no"), ("BLPOP", "never", 0)])
    assert await line.exchange([("PING",)]) == PONG
    assert await line.exchange([("CLIENT", "ID")]) != [id]


async def test_a_command_that_is_refused_leaves_the_next_its_own_answer(line: RedisLine) -> None:
    with pytest.raises(CacheUnavailable):
        await line.exchange([("ECHO", "a"), ("NOSUCH",), ("ECHO", "b")])
    assert await line.exchange([("PING",)]) == PONG


async def test_a_server_that_is_away_is_told_of() -> None:
    line = RedisLine("redis://127.0.0.1:1/0", timeout_seconds=5)
    with pytest.raises(CacheUnavailable):
        await line.exchange([("PING",)])
