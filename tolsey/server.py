"""The server: Hypercorn with the bounds a public edge needs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tolsey.http.edge import ASGIApp, Event, Receive, Scope, Send
from tolsey.listeners import BACKLOG, Listeners

GRACE_SECONDS = 10.0

log = structlog.get_logger()


async def nothing() -> None:
    """Leave nothing behind."""


def configured(listener: int, grace_seconds: float) -> Config:
    """Bound what a client may hold open, and say nothing of the server's kind."""
    config = Config()
    config.bind = [f"fd://{listener}"]
    config.backlog = BACKLOG
    config.graceful_timeout = grace_seconds
    config.keep_alive_timeout = 30
    config.keep_alive_max_requests = 1_000_000
    config.h11_max_incomplete_size = 16 * 1024
    config.h2_max_concurrent_streams = 100
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    return config


async def serve_app(
    app: ASGIApp,
    host: str,
    port: int,
    stop: anyio.Event,
    *,
    leave: Callable[[], Awaitable[None]] = nothing,
    ready: Callable[[], None] = lambda: None,
    goodbye_seconds: float = 0.0,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Serve an address until `stop` is set and `leave` is through; see `serve_listener`."""
    with Listeners(host, port, 1) as listeners:
        await serve_listeners(
            app,
            listeners,
            stop,
            leave=leave,
            ready=ready,
            goodbye_seconds=goodbye_seconds,
            grace_seconds=grace_seconds,
        )


async def serve_listeners(
    app: ASGIApp,
    listeners: Listeners,
    stop: anyio.Event,
    *,
    leave: Callable[[], Awaitable[None]] = nothing,
    ready: Callable[[], None] = lambda: None,
    goodbye_seconds: float = 0.0,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Serve the one open listener of this process, say when, and close it; see `serve_listener`."""

    def serves() -> None:
        log.info("service.ready", address=listeners.address)
        ready()

    async def left() -> None:
        await leave()
        listeners.hush()
        listeners.close()

    await serve_listener(
        app,
        os.dup(listeners.of(0).fileno()),
        stop,
        leave=left,
        ready=serves,
        goodbye_seconds=goodbye_seconds,
        grace_seconds=grace_seconds,
    )


async def serve_listener(
    app: ASGIApp,
    listener: int,
    stop: anyio.Event,
    *,
    leave: Callable[[], Awaitable[None]] = nothing,
    ready: Callable[[], None] = lambda: None,
    goodbye_seconds: float = 0.0,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Serve an open listener until `stop` is set and `leave` is through, then close it.

    For `goodbye_seconds` more each response says that its connection ends with it, so that no
    client sends its next request into one that is being closed. Requests in flight are finished.

    Hypercorn's `serve` is never cancelled: its end awaits, and anyio would cancel every await. Being
    cancelled here means: stop, within a bound.
    """

    async def polite(scope: Scope, receive: Receive, send: Send) -> None:
        last = stop.is_set() and scope.get("http_version", "").startswith("1")
        await app(scope, receive, partial(_send_last, send) if last else send)

    async def trigger() -> None:
        ready()  # Hypercorn starts its trigger once the sockets listen
        await stop.wait()
        await leave()
        await anyio.sleep(goodbye_seconds)

    config = configured(listener, grace_seconds)
    task = asyncio.create_task(serve(polite, config, shutdown_trigger=trigger))  # type: ignore[arg-type]  # hypercorn's own ASGI types
    try:
        await asyncio.shield(task)
    except BaseException:
        if not task.done():
            stop.set()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task}, timeout=grace_seconds + 2)
        raise


async def _send_last(send: Send, message: Event) -> None:
    if message["type"] == "http.response.start":
        message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
    await send(message)
