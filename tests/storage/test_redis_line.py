import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.campaigns.simloop import SimLoop
from tests.timing import until
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.runtime import redis_line
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


async def test_no_commands_have_no_answers_and_keep_nobody_waiting(line: RedisLine) -> None:
    assert await line.exchange([("PING",)]) == PONG
    found = await asyncio.gather(line.exchange([]), line.exchange([("PING",)]))
    assert list(found) == [[], PONG]


async def test_what_was_given_up_is_not_the_answer_to_what_is_asked_next(
    line: RedisLine, redis_url: str
) -> None:
    waits = asyncio.create_task(line.exchange([("BLPOP", "late", 0)]))
    other = RedisLine(redis_url, timeout_seconds=30)

    async def is_done() -> bool:
        return b"blocked_clients:1" in (await other.exchange([("INFO", "clients")]))[0]

    await until(is_done)
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


class ResetAsItOpens:
    """A connection as uvloop tells of it that the other side reset before the first command was written."""

    async def connect(self) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")


async def test_a_connection_that_is_reset_as_it_opens_is_told_of_and_made_again(
    line: RedisLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as reset:
        reset.setattr(line._pool, "make_connection", ResetAsItOpens)
        with pytest.raises(CacheUnavailable, match="RuntimeError"):
            await line.exchange([("PING",)])
    assert await line.exchange([("PING",)]) == PONG


async def test_a_command_that_is_refused_leaves_the_next_its_own_answer(line: RedisLine) -> None:
    with pytest.raises(CacheUnavailable):
        await line.exchange([("ECHO", "a"), ("NOSUCH",), ("ECHO", "b")])
    assert await line.exchange([("PING",)]) == PONG


async def test_a_server_that_is_away_is_told_of() -> None:
    line = RedisLine("redis://127.0.0.1:1/0", timeout_seconds=5)
    with pytest.raises(CacheUnavailable):
        await line.exchange([("PING",)])


class Cable:
    """A connection whose answers come when the test says so."""

    def __init__(self) -> None:
        self.transport: Any = self
        self.is_cut = False
        self.answers: Any = None

    def set_protocol(self, answers: Any) -> None:
        self.answers = answers

    def write(self, sent: bytes) -> None:
        """Lose what is sent."""

    def abort(self) -> None:
        self.is_cut = True
        asyncio.get_running_loop().call_soon(self.answers.connection_lost, None)

    def says(self, answer: bytes, after: float) -> None:
        asyncio.get_running_loop().call_later(after, self.answers.data_received, answer)


@pytest.fixture
def cables(monkeypatch: pytest.MonkeyPatch) -> list[Cable]:
    made: list[Cable] = []

    async def opened(line: Any) -> Any:
        made.append(Cable())
        line._answers = redis_line._Answers(made[-1])  # type: ignore[arg-type]  # what it uses of one
        return line._answers

    monkeypatch.setattr(RedisLine, "_opened", opened)
    return made


def test_each_waits_for_its_own_time_however_long_the_line_is_in_use(cables: list[Cable]) -> None:
    async def lived() -> list[object]:
        line, loop = RedisLine("redis://nobody", timeout_seconds=1.0), asyncio.get_running_loop()
        told: list[object] = []
        for wait, blocks in ((0.9, 0.0), (6.0, 5.5), (0.5, 0.0), (0.1, 0.0)):
            asking = asyncio.create_task(line.exchange([("PING",)], blocks_seconds=blocks))
            await asyncio.sleep(0.01)
            cables[0].says(b"+PONG\r\n", wait)
            told.append(await asking)
        began = loop.time()
        with pytest.raises(CacheUnavailable, match="TimeoutError"):
            await line.exchange([("PING",)])
        return [*told, round(loop.time() - began, 3), cables[0].is_cut, len(cables)]

    assert SimLoop(1).play(lived()) == [*[PONG] * 4, 1.0, True, 1]


def test_who_waits_less_long_is_told_before_who_asked_first_and_the_line_is_given_up(
    cables: list[Cable],
) -> None:
    async def lived() -> list[float]:
        line, loop = RedisLine("redis://nobody", timeout_seconds=1.0), asyncio.get_running_loop()

        async def refused(blocks: float) -> float:
            with pytest.raises(CacheUnavailable):
                await line.exchange([("PING",)], blocks_seconds=blocks)
            return round(loop.time(), 3)

        first = asyncio.create_task(refused(30.0))
        while not cables:
            await asyncio.sleep(0.01)
        opened = round(loop.time(), 3)
        return [at - opened for at in await asyncio.gather(first, refused(0.0))]

    assert SimLoop(1).play(lived()) == [1.0, 1.0]
