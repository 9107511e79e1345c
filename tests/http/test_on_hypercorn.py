"""The whole application behind the server it ships with, spoken to byte by byte."""

import socket
from collections.abc import AsyncIterator

import anyio
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tolsey.http.edge import Edge


@pytest.fixture
async def port(edge: Edge) -> AsyncIterator[int]:
    config = Config()
    config.include_server_header = False
    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    stopped = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await serve(edge, config, shutdown_trigger=stopped.wait)  # type: ignore[arg-type]  # plain ASGI

        tasks.start_soon(run)
        yield number
        stopped.set()


async def spoken(port: int, text: bytes) -> bytes:
    with anyio.fail_after(60):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(text)
            answer = b""
            try:
                while True:
                    answer += await stream.receive()
            except anyio.EndOfStream:
                return answer


HEAD = b"Host: 127.0.0.1\r\nConnection: close\r\n"


async def test_a_request_is_answered_with_our_headers_and_no_ones_name(port: int) -> None:
    answer = await spoken(port, b"GET /api/auth/session HTTP/1.1\r\n" + HEAD + b"\r\n")
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"http/1.1 401")
    assert b"\r\nserver:" not in head
    assert b"x-content-type-options: nosniff" in head
    assert b"unauthorized" in answer


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\nContent-Length: 4\r\n",
        b"Content-Length: -1\r\n",
    ],
)
async def test_a_length_said_twice_is_never_guessed(port: int, lengths: bytes) -> None:
    body = b"Content-Type: application/json\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n"
    answer = await spoken(port, b"POST /api/auth/login HTTP/1.1\r\n" + HEAD + lengths + body)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_body_too_large_is_refused_before_it_is_read(port: int) -> None:
    text = b"Content-Type: application/json\r\nContent-Length: 1048577\r\n\r\n"
    answer = await spoken(port, b"POST /api/auth/login HTTP/1.1\r\n" + HEAD + text)
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_head_too_large_is_refused(port: int) -> None:
    long = b"X-Long: " + b"x" * 17_000 + b"\r\n"
    answer = await spoken(port, b"GET / HTTP/1.1\r\n" + HEAD + long + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431")
