"""The server: an application behind an address, within the bounds a public edge needs."""

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import anyio
import structlog

from tolsey.http.web.edge import ASGIApp
from tolsey.listeners import Listeners
from tolsey.serving.acceptor import Acceptor, HttpServer
from tolsey.serving.connections import Connections, room_for_connections
from tolsey.serving.on_hypercorn import Hypercorn

GRACE_SECONDS = 10.0

ServerName: TypeAlias = Literal["hypercorn", "uvicorn"]

log = structlog.get_logger()


async def nothing() -> None:
    """Leave nothing behind."""


class ServerUnavailable(Exception):  # noqa: N818 - a sentence for whoever chose it
    """The server that was chosen cannot serve here."""


def chosen(name: ServerName, *, cleartext_http2: bool = False) -> HttpServer:
    """Answer the server of a name, or raise ServerUnavailable with what to do."""
    if name == "hypercorn":
        return Hypercorn(cleartext_http2=cleartext_http2)
    if cleartext_http2:
        raise ServerUnavailable("CLEARTEXT_HTTP2 needs --server hypercorn.")
    try:
        from tolsey.serving.on_uvicorn import Uvicorn  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ServerUnavailable("Install it first: pip install 'tolsey[uvicorn]'.") from error
    return Uvicorn()


async def serve_app(app: ASGIApp, host: str, port: int, stop: anyio.Event, **options: Any) -> None:
    """Serve an address until `stop` is set; the options are those of `serve_listeners`."""
    with Listeners(host, port, 1) as listeners:
        await serve_listeners(app, listeners, stop, **options)


async def serve_listeners(
    app: ASGIApp,
    listeners: Listeners,
    stop: anyio.Event,
    *,
    leave: Callable[[], Awaitable[None]] = nothing,
    ready: Callable[[], None] = lambda: None,
    **options: Any,
) -> None:
    """Serve the one open listener of this process, say when, and close it; see `serve_listener`."""

    def serves() -> None:
        log.info("service.ready", address=listeners.address)
        ready()

    async def left() -> None:
        await leave()
        listeners.refuse_new_connections()
        listeners.close()

    listener = os.dup(listeners.of(0).fileno())
    await serve_listener(app, listener, stop, leave=left, ready=serves, **options)


async def serve_listener(
    app: ASGIApp,
    listener: int,
    stop: anyio.Event,
    *,
    leave: Callable[[], Awaitable[None]] = nothing,
    ready: Callable[[], None] = lambda: None,
    goodbye_seconds: float = 0.0,
    grace_seconds: float = GRACE_SECONDS,
    server: HttpServer | None = None,
    most_connections: int | None = None,
) -> None:
    """Serve an open listener until `stop` is set and `leave` is through, then close it.

    For `goodbye_seconds` more each response says that its connection ends with it, so that no
    client sends its next request into one that is being closed. Requests in flight are finished,
    within a bound, also when this is cancelled. There are never more than `most_connections` open,
    by default as many as there are descriptors for.
    """
    connections = Connections(
        app, most_connections or room_for_connections(), is_ending=stop.is_set
    )
    acceptor = Acceptor(socket.socket(fileno=listener), connections, server or Hypercorn())
    acceptor.open()
    try:
        ready()
        await stop.wait()
        await leave()
        await anyio.sleep(goodbye_seconds)
    finally:
        stop.set()
        with anyio.CancelScope(shield=True):
            await acceptor.close(grace_seconds)
