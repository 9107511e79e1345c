"""A server on loopback for any stand-in."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import hypercorn.asyncio
from hypercorn.config import Config

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


async def whole(receive: Receive) -> bytes:
    """Read the body of a request."""
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


@asynccontextmanager
async def listening(app: Application, port: int = 0) -> AsyncIterator[int]:
    """Serve an ASGI application on loopback and give the port while the block runs."""
    listener = socket.create_server(("127.0.0.1", port))
    chosen: int = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.1
    config.keep_alive_timeout = 600  # a client on a busy machine is slow to ask again
    config.include_server_header = False
    stop = asyncio.Event()
    # A task, not a task group: a failure inside the block must reach the test as it is.
    running = asyncio.create_task(
        hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait)  # type: ignore[arg-type]
    )
    try:
        yield chosen
    finally:
        stop.set()
        await running
