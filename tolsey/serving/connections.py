"""The open connections of a process: how many there may be, and whose turn ends when there are too many."""

import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import anyio
import structlog

from tolsey.http.web.edge import ASGIApp, Event, Receive, Scope, Send

PATIENCE_SECONDS: Final = 30.0
"""So long may a client keep us waiting: for a request's head, more of its body, room for the answer."""
SWEEP_SECONDS: Final = 1.0
WANTED_DESCRIPTORS: Final = 65_536
RESERVED_DESCRIPTORS: Final = 256
"""For the database, Redis, the log, other people's services, and those just accepted."""
MOST_CONNECTIONS: Final = 10_000
"""An idle one takes 8 to 16 KB, so that this many fit beside the actors."""

log = structlog.get_logger()


def room_for_connections() -> int:
    """Raise the limit of descriptors as far as we may, and say how many connections fit below it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unbound = resource.RLIM_INFINITY
    wanted = WANTED_DESCRIPTORS if hard == unbound else min(WANTED_DESCRIPTORS, hard)
    if soft != unbound and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError) as error:  # some systems promise more than they give
            log.warning("descriptors.unraised", error=repr(error), limit=soft)
    most = wanted if soft == unbound else soft
    return min(MOST_CONNECTIONS, max(most // 2, most - RESERVED_DESCRIPTORS))


def refusal(status: int, headers: bytes = b"") -> bytes:
    """Write the answer of a connection that ends before the application sees it."""
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return line + headers + b"connection: close\r\ncontent-length: 0\r\n\r\n"


class ClientConnection:
    """One client's connection, as an application of its own that notes when it waits for its client."""

    def __init__(self, connections: "Connections") -> None:
        self._connections = connections
        self._requests = 0
        self._owed = 0
        self.close: Callable[[], None] | None = None
        """Ends it when all was sent; unset until the server has it."""
        self.abort: Callable[[], None] | None = None
        """Ends it at once."""
        self.aborted = False
        self.known = False
        """Whether it was ever answered."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._requests == 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of this connection."""
        if scope["type"] != "http":
            await self._connections.app(scope, receive, send)
            return
        # Of HTTP/2's requests each has a body and an answer to wait for; the connection serves the others.
        one_at_a_time = scope["http_version"].startswith("1")
        body_ended = not one_at_a_time

        async def received() -> Event:
            nonlocal body_ended
            if body_ended:
                return await receive()
            self._owe(1)
            try:
                event = await receive()
            finally:
                self._owe(-1)
            body_ended = not event.get("more_body")
            return event

        async def sent(event: Event) -> None:
            if event["type"] == "http.response.start" and self._connections.is_ending():
                event = {**event, "headers": [*event.get("headers", ()), (b"connection", b"close")]}
            self._owe(1)
            try:
                await send(event)
            finally:
                self._owe(-1)

        self._requests += 1
        self._connections.notice(self, waits=False)
        try:
            await self._connections.app(scope, received, sent if one_at_a_time else send)
        finally:
            self._requests -= 1
            self.known = True
            self._connections.notice(self, waits=self.is_idle)

    def _owe(self, change: int) -> None:
        self._owed += change
        if self._requests:
            self._connections.notice(self, waits=self._owed > 0)

    def opened(self, close: Callable[[], None], abort: Callable[[], None]) -> None:
        """Take over how it is ended; one that was given up before is ended now."""
        self.close, self.abort = close, abort
        if self.aborted:
            abort()

    def give_up(self) -> None:
        """End it at once, whatever it was about to say."""
        self.aborted = True
        if self.abort is not None:
            self.abort()


class Connections:
    """All open connections to an application, never more than `most`.

    When there is no room for a new one, the one goes that has kept us waiting longest, first of those
    that were never answered. Where nobody keeps us waiting the new one is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        most: int,
        *,
        is_ending: Callable[[], bool],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.app = app
        self.is_ending = is_ending
        """Whether every answer from now on is its connection's last."""
        self._most = most
        self._patience_seconds = patience_seconds
        self._open: set[ClientConnection] = set()
        self._strangers: OrderedDict[ClientConnection, float] = OrderedDict()
        self._known: OrderedDict[ClientConnection, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self) -> ClientConnection | None:
        """Count a new connection; None when there is no room and nobody to make some."""
        if len(self._open) >= self._most and not self.make_room():
            return None
        connection = ClientConnection(self)
        self._open.add(connection)
        self.notice(connection, waits=True)
        return connection

    def make_room(self) -> bool:
        """Give up who has kept us waiting longest; answer whether there was one."""
        for waiting in (self._strangers, self._known):
            if waiting:
                self._give_up(next(iter(waiting)))
                return True
        return False

    def notice(self, connection: ClientConnection, *, waits: bool) -> None:
        """Note that a connection waits for its client from now on, or does not any more."""
        waiting = self._known if connection.known else self._strangers
        if not waits:
            self._strangers.pop(connection, None)
            self._known.pop(connection, None)
        elif connection not in waiting and connection in self._open:
            waiting[connection] = time.monotonic()

    def forget(self, connection: ClientConnection) -> None:
        """Stop counting one that is closed."""
        self._open.discard(connection)
        self.notice(connection, waits=False)

    async def sweep(self) -> None:
        """Give up, for as long as this runs, whoever keeps us waiting too long."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            before = time.monotonic() - self._patience_seconds
            for waiting in (self._strangers, self._known):
                while waiting and next(iter(waiting.values())) <= before:
                    self._give_up(next(iter(waiting)))

    def close_idle(self) -> None:
        """Close every connection in which no request is under way."""
        for connection in list(self._open):
            if connection.is_idle and connection.close is not None:
                connection.close()
            elif connection.is_idle:
                connection.give_up()

    def give_up_all(self) -> None:
        """End every connection at once."""
        for connection in list(self._open):
            self._give_up(connection)

    def _give_up(self, connection: ClientConnection) -> None:
        self.forget(connection)
        connection.give_up()
