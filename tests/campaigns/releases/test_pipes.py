"""Answers are read whole or not yet, and nothing that went wrong looks like one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from tests.campaigns.releases.pipes import Pipes, read

WHOLE = (
    b'HTTP/1.1 201 \r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"id":"a b"}'[
        :-1
    ]
)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\nA\r\n: done\r\n\r\n\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 \r\n\r\n"


@pytest.mark.parametrize(
    ("got", "status", "text"),
    [(WHOLE, 201, '{"id":"a b"'), (CHUNKED, 200, "event: done\r\n\r\n"), (EMPTY, 204, "")],
    ids=["length", "chunks", "none"],
)
def test_an_answer_is_read_when_it_is_whole(got: bytes, status: int, text: str) -> None:
    answer = read(got)
    assert answer is not None
    assert (answer.status_code, answer.text) == (status, text)
    assert [read(got[:n]) for n in range(len(got) - 1)] == [None] * (len(got) - 1)


@asynccontextmanager
async def served(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    seconds: float = 60,
) -> AsyncIterator[Pipes]:
    tasks: list[asyncio.Task[None]] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await talk(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(one, "127.0.0.1", 0) as server:
        pipes = Pipes(server.sockets[0].getsockname()[1], {}, seconds=seconds)
        async with pipes.standing():
            yield pipes
        await asyncio.gather(*tasks)


async def test_what_is_cut_off_or_late_or_at_nobodys_port_is_no_answer() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(WHOLE[:-1])

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(cut) as pipes:
        with pytest.raises(httpx.ReadError):
            await pipes.request("GET", "/")
    async with served(silent, seconds=0.2) as pipes:
        with pytest.raises(httpx.ReadTimeout):
            await pipes.request("POST", "/", json={"a": 1})
    with pytest.raises(httpx.ConnectError):
        await pipes.request("GET", "/")


async def test_a_connection_is_used_again_and_not_after_its_end() -> None:
    came = 0

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(EMPTY)

    async with served(twice) as pipes:
        for _ in range(2):
            assert (await pipes.request("GET", "/")).status_code == httpx.codes.NO_CONTENT
        assert came == 1
        while any(pipe.is_free for pipe in pipes._free):
            await asyncio.sleep(0.01)
        assert (await pipes.request("GET", "/")).status_code == httpx.codes.NO_CONTENT
        assert came == 2
