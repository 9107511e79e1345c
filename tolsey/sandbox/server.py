"""The platform's HTTP face: routes, faults, and a server on loopback."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import hypercorn.asyncio
import orjson
from hypercorn.config import Config
from quart import Quart, Response, request

from tolsey.sandbox import grant
from tolsey.sandbox.bodies import shop_body
from tolsey.sandbox.faults import Fault
from tolsey.sandbox.shops import Shop

if TYPE_CHECKING:
    from tolsey.sandbox.platform import Platform

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
_CHUNK = 1 << 18
_BAD_TOKEN = "[API] Invalid API key or access token (unrecognized login or wrong password)"  # noqa: S105 - a documented error text


def build_app(platform: "Platform") -> Quart:
    """Make the routes of the platform."""
    app = Quart("tolsey.sandbox")
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False

    @app.post("/<domain>/admin/oauth/access_token")
    async def access_token(domain: str) -> Response:
        shop = platform.shops.get(domain)
        if shop is None:
            return _no_such_shop()
        body = await request.body
        asked = grant.read_form(body, request.headers.get("content-type", ""))
        answer = grant.grant(
            shop, platform.clients, asked, request.headers.get("accept", ""), platform.now()
        )
        platform.grants += 1
        return Response(answer.body, answer.status, content_type=answer.content_type)

    @app.post("/<domain>/admin/api/<version>/graphql.json")
    async def graphql(domain: str, version: str) -> Response:
        shop = _opened(platform, domain, version)
        if isinstance(shop, Response):
            return shop
        status, answer = await platform.admin.answer(shop, await request.body)
        reply = _json(status, answer)
        reply.headers["X-Shopify-API-Version"] = version
        return reply

    _add_downloads(platform, app)
    return app


def _add_downloads(platform: "Platform", app: Quart) -> None:
    @app.get("/<domain>/admin/oauth/access_scopes.json")
    async def access_scopes(domain: str) -> Response:
        shop = _opened(platform, domain, platform.api_version)
        if isinstance(shop, Response):
            return shop
        return _json(200, {"access_scopes": [{"handle": scope} for scope in shop.scopes]})

    @app.get("/<domain>/admin/api/<version>/shop.json")
    async def shop_json(domain: str, version: str) -> Response:
        shop = _opened(platform, domain, version)
        if isinstance(shop, Response):
            return shop
        return _json(200, {"shop": shop_body(shop)})

    @app.get("/<domain>/bulk/<int:number>/<key>.jsonl")
    async def bulk_file(domain: str, number: int, key: str) -> Response:
        shop = platform.shops.get(domain)
        operation = shop.bulk_operations.get(number) if shop else None
        if operation is None or operation.key != key or operation.file is None:
            return Response("<Error><Code>AccessDenied</Code></Error>", 403)
        reply = Response(_read_file(operation.file.fileno(), operation.file_size))
        reply.headers["Content-Type"] = "application/jsonl"
        reply.headers["Content-Length"] = str(operation.file_size)
        reply.timeout = None
        return reply


async def _read_file(descriptor: int, size: int) -> AsyncIterator[bytes]:
    offset = 0
    while offset < size:
        chunk = await anyio.to_thread.run_sync(os.pread, descriptor, _CHUNK, offset)
        offset += len(chunk)
        yield chunk


def _opened(platform: "Platform", domain: str, version: str) -> Shop | Response:
    """Give the shop the request's token opens, or the answer that refuses it."""
    shop = platform.shops.get(domain)
    if shop is None or version not in platform.versions:
        return _no_such_shop() if shop is None else _json(404, {"errors": "Not Found"})
    if not shop.accepts(request.headers.get("X-Shopify-Access-Token", ""), platform.now()):
        return _json(401, {"errors": _BAD_TOKEN})
    if shop.frozen:
        return _json(402, {"errors": "Unavailable Shop"})
    return shop


def _no_such_shop() -> Response:
    page = "<!DOCTYPE html><html><head><title>Not found</title></head><body>Sorry, this shop is unavailable.</body></html>"
    return Response(page, 404, content_type="text/html; charset=utf-8")


def _json(status: int, body: dict[str, Any]) -> Response:
    return Response(orjson.dumps(body), status, content_type="application/json; charset=utf-8")


def _kind(path: str) -> str:
    if path.endswith("/graphql.json"):
        return "graphql"
    return "bulk" if "/bulk/" in path else "token"


class Faulty:
    """An ASGI application that misbehaves first when the platform's faults say so."""

    def __init__(self, platform: "Platform", app: Quart) -> None:
        self._platform = platform
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or let a fault answer it."""
        if scope["type"] == "http":
            self._platform.requests += 1
            kind = _kind(scope["path"])
            if kind == "graphql" and self._platform.faults.waiting.get("mutation"):
                body = await _whole(receive)
                receive = _again(body, receive)
                kind = "mutation" if _is_mutation(body) else kind
            fault = self._platform.faults.take(kind)
            if fault is not None and fault.kind == "lost":
                await self._app(scope, receive, _unheard)  # type: ignore[arg-type]
            if fault is not None and await _misbehave(fault, send):
                return
        await self._app(scope, receive, send)  # type: ignore[arg-type]


async def _whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Let a body that was read be read once more."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> dict[str, Any]:
        return events.pop() if events else await receive()

    return replayed


def _is_mutation(body: bytes) -> bool:
    return str(orjson.loads(body).get("query", "")).lstrip().startswith("mutation")


async def _unheard(message: dict[str, Any]) -> None:
    """Let nobody hear an answer."""


async def _misbehave(fault: Fault, send: Send) -> bool:
    """Play a fault; a slow or held answer still has to be given afterwards."""
    if fault.kind == "slow":
        await anyio.sleep(fault.seconds)
        return False
    if fault.released is not None:
        await fault.released.wait()
        return False
    cut = fault.kind in {"reset", "lost"}
    size = 1_000_000 if cut else len(fault.body)
    headers = [*fault.headers, (b"content-length", str(size).encode())]
    status = 200 if cut else fault.status
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = b'{"data":' if cut else fault.body
    await send({"type": "http.response.body", "body": body, "more_body": cut})
    return True


@asynccontextmanager
async def listening(app: Application, port: int = 0) -> AsyncIterator[int]:
    """Serve an ASGI application on loopback and give the port while the block runs."""
    listener = socket.create_server(("127.0.0.1", port))
    chosen: int = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.1
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
