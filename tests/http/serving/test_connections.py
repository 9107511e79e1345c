"""What clients may do with connections, and what it costs the others: nothing."""

import socket
import struct
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tests.http.serving.conftest import Serve, head_of, rest_of
from tolsey.http.web.edge import Edge
from tolsey.serving import connections

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /answer HTTP/1.1\r\n" + HOST + b"\r\n"


class Application:
    """Answers at once, after the body, when it is told to, or much."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()
        paths = {"/answer": self.answer, "/read": self.read, "/wait": self.wait, "/much": self.much}
        self.edge = Edge(self.answer, paths, is_https=False)

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        self.asked.set()
        await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def read(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.set()
        while (await receive()).get("more_body"):
            pass
        await self.answer(scope, receive, send)

    async def wait(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.set()
        await self.may_answer.wait()
        await self.answer(scope, receive, send)

    async def much(self, scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        self.asked.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
            await anyio.sleep(0)  # one that is gone is no reason for a server to wait
            if self.may_answer.is_set():
                return


LENGTH = (b"content-length", b"2")
DATA_SEGMENTS_RECEIVED = 152
"""Where `tcp_info` says so (linux/tcp.h)."""
STARTS = {
    "nothing": b"",
    "half a head": b"GET /answer HTTP/1.1\r\nHost: 127",
    "half a body": b"POST /read HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\nhalf",
    "a request": GET,
    "two requests": GET + GET,
    "a request that is not answered yet": GET.replace(b"answer", b"wait"),
}


@pytest.fixture
def application() -> Application:
    return Application()


async def honest(stream: SocketStream) -> None:
    await stream.send(GET)
    reported = await head_of(stream)
    assert reported.startswith(b"http/1.1 200 "), reported


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a connection's segments so")
async def test_a_small_answer_is_one_write(serve: Serve, application: Application) -> None:
    async with serve(application.edge) as served, served.connected() as stream:
        await stream.send(GET)
        reported = await head_of(stream)
        while not reported.endswith(b"\r\n\r\nok"):
            reported += await stream.receive()
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - of a socket
        told_of = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
        assert struct.unpack_from("I", told_of, DATA_SEGMENTS_RECEIVED)[0] == 1


@pytest.mark.parametrize("said", STARTS)
async def test_a_connection_that_its_client_closed_is_closed_at_once(
    serve: Serve, application: Application, said: str
) -> None:
    async with serve(application.edge) as served:
        for _ in range(5):
            async with served.connected() as stream:
                if STARTS[said]:
                    await stream.send(STARTS[said])
                if said.endswith("request"):
                    await head_of(stream)
        application.may_answer.set()
        await served.until(open_connections=0)


async def test_a_flood_of_idle_connections_leaves_honest_requests_unharmed(
    serve: Serve, application: Application
) -> None:
    most, floods = 20, list(STARTS.values())[:3]
    async with (
        serve(application.edge, most) as served,
        served.connected() as pooled,
        AsyncExitStack() as flood,
    ):
        await honest(pooled)
        for number in range(10 * most):
            stream = await flood.enter_async_context(served.connected())
            if floods[number % 3]:
                await stream.send(floods[number % 3])
            await honest(pooled)
            async with served.connected() as newcomer:
                await honest(newcomer)
            assert len(served.connections) <= most


async def test_who_was_answered_goes_after_those_who_never_asked(
    serve: Serve, application: Application
) -> None:
    async with (
        serve(application.edge, 3) as served,
        served.connected() as known,
        AsyncExitStack() as flood,
    ):
        await honest(known)
        for _ in range(5):
            await flood.enter_async_context(served.connected())
        await honest(known)


async def test_a_connection_for_which_there_is_no_room_is_told_so(
    serve: Serve, application: Application
) -> None:
    async with (
        serve(application.edge, 1) as served,
        served.connected() as first,
    ):
        await first.send(STARTS["a request that is not answered yet"])
        await application.asked.wait()
        async with served.connected() as second:
            refused = (await rest_of(second)).lower()
        assert refused.startswith(b"http/1.1 503")
        assert b"connection: close" in refused
        assert b"retry-after: 1" in refused
        application.may_answer.set()
        assert b"http/1.1 200 " in await head_of(first)


@pytest.mark.parametrize("said", list(STARTS)[:4])
async def test_who_keeps_us_waiting_is_given_up(
    serve: Serve, application: Application, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.02)
    async with (
        serve(application.edge, patience_seconds=0.1) as served,
        served.connected() as stream,
    ):
        if STARTS[said]:
            await stream.send(STARTS[said])
        await rest_of(stream)
        await served.until(open_connections=0)


async def test_who_does_not_read_the_answer_is_given_up(
    serve: Serve, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.02)
    async with (
        serve(application.edge, patience_seconds=0.1) as served,
        served.connected() as stream,
    ):
        await stream.send(GET.replace(b"answer", b"much"))
        await application.asked.wait()
        await served.until(open_connections=0)
        application.may_answer.set()


async def test_who_waits_for_us_is_never_given_up(
    serve: Serve, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.01)
    async with (
        serve(application.edge, patience_seconds=0.05) as served,
        served.connected() as stream,
    ):
        await stream.send(STARTS["a request that is not answered yet"])
        await application.asked.wait()
        async with served.connected() as idle:
            await rest_of(idle)  # others are given up meanwhile
        application.may_answer.set()
        assert b"http/1.1 200 " in await head_of(stream)
