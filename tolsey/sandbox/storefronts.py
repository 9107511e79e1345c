"""Storefronts of the public web: pages, catalogues, robots files, and the traps that crawlers meet.

One server is all of them, told apart by `Host`. Each notes what it was asked and when, on its own clock.
"""

import asyncio
import json
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from tolsey.sandbox.server import Receive, Send, listening, whole

ROBOTS: Final = """\
User-agent: *
Disallow: /admin
Disallow: /cart
Disallow: /orders
Disallow: /checkouts/
Disallow: /account
Disallow: /collections/*sort_by*
Disallow: /*/collections/*filter*&*filter*
Disallow: /policies/
Disallow: /search
Disallow: /recommendations/products
"""
"""As the platform's shops have it by default."""
ENTERED: Final = "storefront_digest=entered"
PIECE: Final = b"x" * 65_536
MOST_PIECES: Final = 4_096
DRIP_SECONDS: Final = 0.02
PER_PAGE: Final = 250
BOMB_BYTES: Final = 64 << 20


class Trap(StrEnum):
    """What a storefront may do to whoever reads it."""

    ENDLESS = "endless"
    BOMB = "bomb"
    DRIP = "drip"
    LOOP = "loop"
    WRONG_TYPES = "wrong_types"
    MILLION = "million"
    SAME_PAGE = "same_page"
    CROWDED = "crowded"
    """One page that is nothing but brackets."""
    MARKUP = "markup"
    SILENT = "silent"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the storefront saw it."""

    at: float
    path: str
    port: int
    """Of the other side: it tells connections apart."""
    headers: Mapping[str, str]


@dataclass
class Storefront:
    """One shop, and how it treats visitors."""

    domain: str
    products: list[dict[str, Any]] = field(default_factory=list)
    robots: str = ROBOTS
    robots_status: int = 200
    currency: str = "USD"
    home: str = ""
    has_catalogue: bool = True
    has_password: bool = False
    password: str = "between us"  # noqa: S105 - of a shop that nobody has
    redirects: dict[str, str] = field(default_factory=dict)
    throttled: list[tuple[int, str | None]] = field(default_factory=list)
    """Statuses, with what they say in Retry-After, that the next pages but robots.txt get."""
    trap: Trap | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Texts at paths of their own."""
    asked: list[Asked] = field(default_factory=list)

    def paths(self) -> list[str]:
        """List what was asked for."""
        return [one.path for one in self.asked]


Answer = tuple[int, dict[str, str], bytes]


class Storefronts:
    """Every storefront of this web."""

    def __init__(self, *shops: Storefront) -> None:
        self.shops = {one.domain: one for one in shops}

    def add(self, shop: Storefront) -> Storefront:
        """Open a shop."""
        self.shops[shop.domain] = shop
        return shop

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve on loopback and give the address."""
        async with listening(self._answer, port) as chosen:
            yield f"http://127.0.0.1:{chosen}"

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        query = scope["query_string"].decode()
        path = scope["path"] + (f"?{query}" if query else "")
        shop = self.shops.get(headers.get("host", "").split(":")[0].removeprefix("www."))
        if shop is None:
            return await _send(send, (404, {}, b""))
        port = scope["client"][1]
        shop.asked.append(Asked(at=time.monotonic(), path=path, port=port, headers=headers))
        is_catalogue = scope["path"] == "/products.json"
        if shop.trap is not None and is_catalogue and shop.trap in STREAMED:
            return await _until_gone(STREAMED[shop.trap], receive, send)
        if scope["method"] == "POST" and path == "/password":
            return await _send(send, _entered(shop, await whole(receive)))
        return await _send(send, _page(shop, scope["path"], parse_qs(query), headers))


def _page(
    shop: Storefront, path: str, query: Mapping[str, Sequence[str]], headers: Mapping[str, str]
) -> Answer:
    if path == "/robots.txt":
        return shop.robots_status, {"content-type": "text/plain"}, shop.robots.encode()
    if shop.throttled:
        status, wait = shop.throttled.pop(0)
        return status, {"retry-after": wait} if wait else {}, b""
    if shop.has_password and path != "/password" and ENTERED not in headers.get("cookie", ""):
        return 302, {"location": "/password"}, b""
    if path in shop.files:
        return 200, {"content-type": "text/plain"}, shop.files[path].encode()
    if path in shop.redirects:
        return 302, {"location": shop.redirects[path]}, b""
    return _shown(shop, path, int((query.get("page") or ["1"])[0]), headers)


def _entered(shop: Storefront, body: bytes) -> Answer:
    """Let in who knows the password, by a cookie; show the others the same page again."""
    told = parse_qs(body.decode("utf-8", "replace"))
    if told.get("password") != [shop.password] or told.get("form_type") != ["storefront_password"]:
        return 200, {"content-type": "text/html"}, _home(shop)
    return 302, {"location": "/", "set-cookie": f"{ENTERED}; path=/; HttpOnly"}, b""


def _shown(shop: Storefront, path: str, page: int, headers: Mapping[str, str]) -> Answer:
    if path in {"/", "/password"}:
        return 200, {"content-type": "text/html"}, _home(shop)
    if path == "/sitemap.xml":
        listed = b"<urlset><url><loc>https://shop.example/products/a</loc></url></urlset>"
        return 200, {"content-type": "application/xml"}, listed
    if path == "/meta.json" and shop.has_catalogue:
        return 200, {"content-type": "application/json"}, orjson.dumps(_meta(shop))
    if path == "/products.json" and shop.has_catalogue:
        return _catalogue(shop, page, headers)
    return 404, {}, b""


def _home(shop: Storefront) -> bytes:
    if shop.trap == Trap.MARKUP:
        return (
            b"<" * 200_000 + b"<meta " * 100_000 + b'<script type="application/ld+json">{' * 9_000
        )
    if shop.home or not shop.has_catalogue:
        return (shop.home or "<html><title>A diary</title></html>").encode()
    name = shop.domain.split(".")[0]
    theme = (
        '{"name":"Dawn","id":1,"schema_name":"Dawn","schema_version":"15.0.0","style":{"id":null}}'
    )
    return f"""<!doctype html><html lang="en"><head><title>{name}</title>
<meta name="description" content="Things of {name}">
<link rel="canonical" href="https://{shop.domain}/">
<script src="https://cdn.shopify.com/s/files/1/theme.js"></script>
<script async src="https://static.klaviyo.com/onsite/js/klaviyo.js"></script>
<script src="https://cdn.judge.me/loader.js"></script>
<script>window.Shopify = window.Shopify || {{}}; Shopify.theme = {theme};</script>
<script type="application/ld+json">{{"@type":"Product","aggregateRating":{{"ratingValue":"4.7","reviewCount":"128"}}}}</script>
</head><body><h1>{name}</h1><a href="https://www.instagram.com/{name}">Instagram</a>
<a href="/policies/shipping-policy">Shipping</a></body></html>""".encode()


def _meta(shop: Storefront) -> dict[str, Any]:
    return {
        "id": 1,
        "name": shop.domain.split(".")[0],
        "city": "Ghent",
        "country": "BE",
        "currency": shop.currency,
        "domain": shop.domain,
        "myshopify_domain": f"{shop.domain.split('.')[0]}.myshopify.com",
        "description": "A shop of the sandbox.",
        "ships_to_countries": ["BE", "NL"],
    }


def _catalogue(shop: Storefront, page: int, headers: Mapping[str, str]) -> Answer:
    if shop.trap in MADE:
        return 200, {"content-type": "application/json"}, MADE[shop.trap](page)
    start = (page - 1) * PER_PAGE
    body = orjson.dumps({"products": shop.products[start : start + PER_PAGE]})
    tag = f'"{sha256(body).hexdigest()[:16]}"'
    if headers.get("if-none-match") == tag:
        return 304, {"etag": tag}, b""
    return 200, {"content-type": "application/json", "etag": tag}, body


def product(id: int, **given: Any) -> dict[str, Any]:
    """Make a product in the public form, of one variant; `quantity` is shown only where it is given."""
    variant = {
        "id": id * 10,
        "title": "Default Title",
        "sku": f"SKU-{id}",
        "price": given.pop("price", "10.00"),
        "compare_at_price": given.pop("compare_at_price", None),
        "available": given.pop("available", True),
    }
    if "quantity" in given:
        variant["inventory_quantity"] = given.pop("quantity")
    return {
        "id": id,
        "title": f"Product {id}",
        "handle": f"product-{id}",
        "vendor": "Sandbox",
        "product_type": "Thing",
        "published_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "tags": [],
        "variants": [variant],
        **given,
    }


def _million(page: int) -> bytes:
    first = page * PER_PAGE
    return orjson.dumps({"products": [product(first + n) for n in range(PER_PAGE)]})


def _same(page: int) -> bytes:
    del page
    return _million(1)


def _wrong(page: int) -> bytes:
    del page
    odd: list[Any] = [None, 7, "text", [], {"id": "one"}, {"id": 2**80, "variants": []}]
    odd += [{"id": True, "variants": []}, {"id": 4, "variants": "none"}, {"id": 5, "variants": [3]}]
    odd.append(product(6, title=["x"], price={"amount": 1}, published_at=17, vendor="\0"))
    # orjson writes no number so long.
    return json.dumps({"products": odd}).encode()


def _crowded(page: int) -> bytes:
    del page
    return b'{"products":[' + b"[]," * 2_000_000 + b"[]]}"


def _broken(page: int) -> bytes:
    del page
    return b'{"products":[{"id":1,' + b"[" * 100_000


MADE: Final[Mapping[Trap | None, Callable[[int], bytes]]] = {
    Trap.MILLION: _million,
    Trap.SAME_PAGE: _same,
    Trap.WRONG_TYPES: _wrong,
    Trap.CROWDED: _crowded,
    Trap.BROKEN: _broken,
}


async def _endless(send: Send) -> None:
    await _begin(send)
    for _ in range(MOST_PIECES):
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        await asyncio.sleep(0)  # so that it is noticed when the other side has gone


async def _bomb(send: Send) -> None:
    packed = zlib.compressobj(wbits=31)
    await _begin(send, ("content-encoding", "gzip"))
    for _ in range(BOMB_BYTES // len(PIECE)):
        body = packed.compress(PIECE)
        if body:
            await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": packed.flush()})


async def _drip(send: Send) -> None:
    await _begin(send)
    for _ in range(MOST_PIECES):
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        await asyncio.sleep(DRIP_SECONDS)


async def _silent(send: Send) -> None:
    del send
    await asyncio.Event().wait()


async def _loop(send: Send) -> None:
    where = f"/products.json?limit=250&page=1&again={time.monotonic_ns()}"
    await _send(send, (302, {"location": where}, b""))


STREAMED: Final[Mapping[Trap, Callable[[Send], Awaitable[None]]]] = {
    Trap.ENDLESS: _endless,
    Trap.BOMB: _bomb,
    Trap.DRIP: _drip,
    Trap.SILENT: _silent,
    Trap.LOOP: _loop,
}


async def _until_gone(
    streamed: Callable[[Send], Awaitable[None]], receive: Receive, send: Send
) -> None:
    """Send until all is sent, or the other side has gone."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(gone()), asyncio.create_task(_waited(streamed(send)))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _waited(sending: Awaitable[None]) -> None:
    await sending


async def _begin(send: Send, *headers: tuple[str, str]) -> None:
    given = [("content-type", "application/json"), *headers]
    listed = [(name.encode(), value.encode()) for name, value in given]
    await send({"type": "http.response.start", "status": 200, "headers": listed})


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    given = {**headers, "content-length": str(len(body))}
    if status == 304:  # noqa: PLR2004 - RFC 9110, section 15.4.5: no body, and no length of one
        del given["content-length"]
    listed = [(name.encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
