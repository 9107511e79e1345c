"""The platform's routes: the grant, the Admin API, and the files of bulk operations."""

import os
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
import orjson
from quart import Quart, Response, request

from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.face import grant
from tolsey.sandbox.commerce.face.admin import Admin
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.webhooks.bodies import shop_body

_CHUNK = 1 << 18
_FROM = re.compile(r"bytes=(\d{1,18})-")
_BAD_TOKEN = "[API] Invalid API key or access token (unrecognized login or wrong password)"  # noqa: S105 - a documented error text


def build_app(platform: Shops, admin: Admin) -> Quart:
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
        status, answer = await admin.answer(shop, await request.body)
        reply = _json(status, answer)
        reply.headers["X-Shopify-API-Version"] = version
        return reply

    _add_downloads(platform, app)
    return app


def _add_downloads(platform: Shops, app: Quart) -> None:
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

    @app.put("/<domain>/uploads/<path:key>")
    async def upload(domain: str, key: str) -> Response:
        shop = platform.shops.get(domain)
        if shop is None or key not in shop.setup.staged:
            return Response("<Error><Code>AccessDenied</Code></Error>", 403)
        shop.setup.staged[key] = await request.body
        return Response("", 200)

    @app.get("/<domain>/bulk/<int:number>/<key>.jsonl")
    async def bulk_file(domain: str, number: int, key: str) -> Response:
        shop = platform.shops.get(domain)
        operation = shop.bulk_operations.get(number) if shop else None
        if operation is None or operation.key != key or operation.file is None:
            return Response("<Error><Code>AccessDenied</Code></Error>", 403)
        size, wanted = operation.file_size, _FROM.fullmatch(request.headers.get("Range", ""))
        start = 0 if wanted is None else min(int(wanted[1]), size)
        reply = Response(_read_file(operation.file.fileno(), start, size), 206 if start else 200)
        reply.headers["Content-Type"] = "application/jsonl"
        reply.headers["Content-Length"] = str(size - start)
        if start:
            reply.headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        reply.timeout = None
        return reply


async def _read_file(descriptor: int, start: int, size: int) -> AsyncIterator[bytes]:
    offset = start
    while offset < size:
        chunk = await anyio.to_thread.run_sync(os.pread, descriptor, _CHUNK, offset)
        offset += len(chunk)
        yield chunk


def _opened(platform: Shops, domain: str, version: str) -> Shop | Response:
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
