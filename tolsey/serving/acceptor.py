"""Accepts connections and hands each to the server that speaks with it."""

import asyncio
import contextlib
import errno
import socket
from typing import Protocol

import structlog

from tolsey.serving.connections import ClientConnection, Connections, refusal

ACCEPTED_AT_ONCE = 64
PAUSE_SECONDS = 0.1
CANCEL_SECONDS = 2.0
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = structlog.get_logger()


class HttpServer(Protocol):
    """Speaks HTTP with one client after the other has connected."""

    async def converse(self, connection: ClientConnection, accepted: socket.socket) -> None:
        """Serve a connection until it is closed."""
        ...

    async def end(self) -> None:
        """Let no connection begin another request."""
        ...


class Acceptor:
    """Accepts at a listener from `open` on; `close` finishes what was accepted."""

    def __init__(
        self, listener: socket.socket, connections: Connections, server: HttpServer
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._conversations: set[asyncio.Task[None]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._sweep: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to accept."""
        self._listener.settimeout(0)
        self._loop.add_reader(self._listener, self._accept)
        self._sweep = self._loop.create_task(self._connections.sweep())

    async def close(self, grace_seconds: float) -> None:
        """Accept no more, and give the requests under way so long to end."""
        self._loop.remove_reader(self._listener)
        if self._paused is not None:
            self._paused.cancel()
        self._listener.close()
        await self._server.end()
        self._connections.close_idle()
        if self._conversations:
            await asyncio.wait(self._conversations, timeout=grace_seconds)
        self._connections.give_up_all()
        for conversation in self._conversations:
            conversation.cancel()
        if self._conversations:
            await asyncio.wait(self._conversations, timeout=CANCEL_SECONDS)
        if self._sweep is not None:
            self._sweep.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except OSError as error:  # mostly: there is no other
                if error.errno in EXHAUSTED:
                    self._wait_for_descriptors(error)
                return
            connection = self._connections.admit()
            if connection is None:
                self._refuse(accepted)
                continue
            accepted.settimeout(0)
            conversation = self._loop.create_task(self._converse(connection, accepted))
            self._conversations.add(conversation)
            conversation.add_done_callback(self._conversations.discard)

    def _refuse(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError):
            accepted.settimeout(0)
            accepted.send(refusal(503, b"retry-after: 1\r\n"))

    def _wait_for_descriptors(self, error: OSError) -> None:
        """Others took what was reserved: end one connection, and try again when it is closed."""
        log.warning("connections.no_descriptors", error=repr(error), open=len(self._connections))
        self._connections.make_room()
        self._loop.remove_reader(self._listener)
        self._paused = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listener, self._accept)

    async def _converse(self, connection: ClientConnection, accepted: socket.socket) -> None:
        try:
            await self._server.converse(connection, accepted)
        except OSError as error:
            log.debug("connection.lost", error=repr(error))
        except Exception:
            log.exception("connection.failed")
        finally:
            self._connections.forget(connection)
            if connection.close is None:  # no server took it
                accepted.close()
