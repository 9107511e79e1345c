"""The server: Hypercorn with the bounds a public edge needs."""

import asyncio
from collections.abc import Callable

import anyio
import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tolsey.http.edge import ASGIApp

log = structlog.get_logger()


def configured(host: str, port: int, grace_seconds: float) -> Config:
    """Bound what a client may hold open, and say nothing of the server's kind."""
    config = Config()
    config.bind = [f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"]
    config.backlog = 2048
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
    before_stop: Callable[[], None] = lambda: None,
    ready: Callable[[], None] = lambda: None,
    grace_seconds: float = 10.0,
) -> None:
    """Serve until `stop` is set; requests in flight are finished.

    Hypercorn's `serve` is never cancelled: its end awaits, and anyio would cancel every await. Being
    cancelled here means: stop, within a bound.
    """
    config = configured(host, port, grace_seconds)

    async def trigger() -> None:
        log.info("service.ready", address=f"http://{host}:{port}")
        ready()  # Hypercorn starts its trigger once the sockets listen
        await stop.wait()
        before_stop()

    task = asyncio.create_task(serve(app, config, shutdown_trigger=trigger))  # type: ignore[arg-type]  # hypercorn's own ASGI types
    try:
        await asyncio.shield(task)
    except BaseException:
        if not task.done():
            stop.set()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task}, timeout=grace_seconds + 2)
        raise
