from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import pytest
from anyio.abc import SocketStream

from tests.timing import until
from tolsey.http.web.edge import ASGIApp
from tolsey.listeners import Listeners
from tolsey.server import ServerName, chosen
from tolsey.serving.acceptor import Acceptor, HttpServer
from tolsey.serving.connections import Connections


@dataclass
class Served:
    """An application behind a server, and the connections that it has open."""

    port: int
    connections: Connections

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[SocketStream]:
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            yield stream

    async def until(self, open_connections: int) -> None:
        await until(lambda: len(self.connections) == open_connections)

    async def asked(self, text: bytes) -> bytes:
        """Say something in a connection of its own, and answer all that is said until it ends."""
        async with self.connected() as stream:
            await stream.send(text)
            return await rest_of(stream)


Serve: TypeAlias = Callable[..., AbstractAsyncContextManager[Served]]


async def rest_of(stream: SocketStream) -> bytes:
    answered = b""
    with anyio.fail_after(240):
        try:
            while True:
                answered += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answered


async def head_of(stream: SocketStream) -> bytes:
    """Read an answer's head, and its body as far as it comes along."""
    answered = b""
    with anyio.fail_after(240):
        while b"\r\n\r\n" not in answered:
            answered += await stream.receive()
    return answered.lower()


@pytest.fixture(params=["hypercorn", "uvicorn"])
def server_name(request: pytest.FixtureRequest) -> ServerName:
    name: ServerName = request.param
    return name


@pytest.fixture
def server(server_name: ServerName) -> HttpServer:
    return chosen(server_name)


@pytest.fixture
def serve(server: HttpServer) -> Serve:
    @asynccontextmanager
    async def served(
        app: ASGIApp, most: int = 1_000, by: HttpServer = server, **options: Any
    ) -> AsyncIterator[Served]:
        connections = Connections(app, most, is_ending=lambda: False, **options)
        with Listeners("127.0.0.1", 0, 1) as listeners:
            listener = listeners.of(0).dup()
            port = listener.getsockname()[1]
        acceptor = Acceptor(listener, connections, by)
        acceptor.open()
        try:
            yield Served(port, connections)
        finally:
            with anyio.CancelScope(shield=True):
                await acceptor.close(grace_seconds=5)

    return served
