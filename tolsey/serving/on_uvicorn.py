"""uvicorn's protocol over our own connections, for whoever needs its speed (the extra `uvicorn`)."""

import asyncio
import socket
import time
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tolsey.http.web.edge import Receive, Scope, Send
from tolsey.serving.connections import ClientConnection, refusal
from tolsey.serving.outgoing import Outgoing, http_date

HEAD_BYTES: Final = 64 * 1024
"""Where reading a head stops; of those that are complete, the application refuses the large ones."""
NEVER_SECONDS: Final = 10**9


class Uvicorn:
    """Speaks HTTP/1.1."""

    def __init__(self) -> None:
        self._protocols: set[ConnectionProtocol] = set()
        self._config = Config(
            _nobody,  # each connection is an application of its own
            interface="asgi3",
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=NEVER_SECONDS,  # the matter of `Connections`
        )
        self._config.load()

    async def converse(self, connection: ClientConnection, accepted: socket.socket) -> None:
        """Serve a connection until it is closed."""
        protocol = ConnectionProtocol(connection, self._config, ServerState())
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: protocol, accepted)
        transport = protocol.transport
        self._protocols.add(protocol)
        connection.opened(transport.close, transport.abort)
        try:
            await protocol.lost.wait()
            if protocol.tasks:
                await asyncio.wait(protocol.tasks)
        finally:
            transport.close()
            self._protocols.discard(protocol)
            for task in protocol.tasks:
                task.cancel()

    async def end(self) -> None:
        """Let no connection begin another request."""
        for protocol in list(self._protocols):
            protocol.shutdown()


class ConnectionProtocol(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with a bound on what it keeps of a head."""

    def __init__(self, connection: ClientConnection, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self.app = cast("Any", connection)
        self.lost = asyncio.Event()
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin, with one write for the head and the body of an answer."""
        super().connection_made(Outgoing(transport, self.loop))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let who waits for the end know."""
        super().connection_lost(exc)
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        """Read on, but no head without an end."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(refusal(431))
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Begin a request, and date its answer."""
        self._head_bytes = 0
        self.server_state.default_headers = [(b"date", http_date(int(time.time())))]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, which is no head."""
        self._head_bytes = 0
        super().on_body(body)


async def _nobody(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve nothing."""
