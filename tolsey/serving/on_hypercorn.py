"""Hypercorn's protocols over our own connections."""

import asyncio
import contextlib
import logging
import socket
import time
from typing import Any, cast

import h11
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr

from tolsey.serving.connections import ClientConnection
from tolsey.serving.outgoing import Outgoing, http_date

READ_BYTES = 64 * 1024


class DatedConfig(Config):
    """Hypercorn's configuration, which writes the date of answers once a second."""

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """Give the headers that the server adds."""
        del protocol
        return [(b"date", http_date(int(time.time())))]


class Http1Protocol(H11Protocol):
    """HTTP/1.1 alone: an upgrade to HTTP/2 is passed over (RFC 9110 section 7.8).

    Where a proxy in front knows nothing of it, what is said after an upgrade passes all its rules.
    """

    async def _check_protocol(self, event: h11.Request) -> None:
        """Stay with what was begun; HTTP/2's preface becomes a request of a version that is refused."""


class Hypercorn:
    """Speaks HTTP/1.1, and HTTP/2 in clear text where that is asked for."""

    def __init__(self, *, cleartext_http2: bool = False) -> None:
        self._protocol = ProtocolWrapper if cleartext_http2 else Http1Protocol
        self._context = WorkerContext(max_requests=None)
        self._config = DatedConfig()
        self._config.h11_max_incomplete_size = 16 * 1024
        self._config.h2_max_concurrent_streams = 100
        self._config.keep_alive_max_requests = 1_000_000
        self._config.accesslog = None
        self._config.errorlog = logging.getLogger("hypercorn.error")

    async def converse(self, connection: ClientConnection, accepted: socket.socket) -> None:
        """Serve a connection until it is closed."""
        loop = asyncio.get_running_loop()
        client = parse_socket_addr(accepted.family, accepted.getpeername())
        server = parse_socket_addr(accepted.family, accepted.getsockname())
        reader = asyncio.StreamReader(limit=READ_BYTES)
        made = asyncio.StreamReaderProtocol(reader)
        made_transport, _ = await loop.connect_accepted_socket(lambda: made, accepted)
        transport = Outgoing(made_transport, loop)
        writer = asyncio.StreamWriter(transport, made, reader, loop)
        connection.opened(transport.close, transport.abort)
        conversation = HttpConversation(reader, writer)
        try:
            async with TaskGroup(loop) as tasks:
                conversation.protocol = self._protocol(
                    ASGIWrapper(cast("Any", connection)),
                    self._config,
                    cast("Any", self._context),
                    cast("Any", tasks),
                    ConnectionState(LifespanState()),
                    False,  # noqa: FBT003 - without TLS; the order is Hypercorn's
                    client,
                    server,
                    conversation.send,
                )
                await conversation.protocol.initiate()
                await conversation.listen()
        finally:
            transport.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def end(self) -> None:
        """Let no connection begin another request."""
        await self._context.terminated.set()


class HttpConversation:
    """Passes bytes between a client and a protocol.

    Hypercorn's own also times how long a connection idles, and waits for that time when the client
    has long gone; who keeps us waiting is the matter of `Connections`.
    """

    protocol: H11Protocol | ProtocolWrapper

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def listen(self) -> None:
        """Read until the client has said all, or is gone."""
        try:
            while not self._reader.at_eof():
                await self.protocol.handle(RawData(await self._reader.read(READ_BYTES)))
        except ConnectionError:
            pass
        await self.protocol.handle(Closed())

    async def send(self, event: Event) -> None:
        """Do what the protocol says."""
        if isinstance(event, RawData):
            if not event.data:  # the end of a body whose length was said
                return
            try:
                self._writer.write(event.data)
                await self._writer.drain()
            except (ConnectionError, RuntimeError):
                await self.protocol.handle(Closed())
        elif isinstance(event, Closed):
            self._writer.close()
