"""What becomes of the connection on which a call is refused, on the server it is shipped with."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from tests.http.people import settings_of
from tests.journeys.conftest import free_port
from tests.mcp.fixture_server import Everyone, serving
from tests.mcp.fixtures import fixtures
from tolsey.http.mcp import endpoint
from tolsey.http.mcp.doors import PREFIX, Door
from tolsey.http.mcp.endpoint import Denied
from tolsey.http.oauth.resources import StoreResources
from tolsey.http.web import edge
from tolsey.http.web.edge import Edge, Scope
from tolsey.server import serve_app

pytestmark = pytest.mark.anyio

STORE = "POST /api/mcp/v1/store_1"
JSON = "Content-Type: application/json\r\n"
BODY = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
REFUSED = [
    (STORE, JSON, 401),
    (STORE, f"{JSON}Origin: https://evil.example\r\n", 403),
    ("POST /api/mcp/v2/store/1", JSON, 404),
    ("PUT /api/mcp/v1/store_1", JSON, 405),
    (STORE, "Authorization: Bearer good\r\n", 415),
]


class Guarded(Everyone):
    """Admits who has a token."""

    async def admit(self, scope: Scope) -> str:
        """Answer a name, or refuse."""
        if any(name == b"authorization" for name, _ in scope["headers"]):
            return "anyone"
        raise Denied(401, "unauthorized", "A token is needed.")


def door() -> Door:
    """Serve the fixtures to who has a token."""
    settings = settings_of(base_url="http://127.0.0.1:8000")
    served = serving(fixtures(), gate=Guarded())
    return Door(StoreResources(settings), served, settings.base_url, on_subaddress=False)


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """Serve no other path."""
    del receive, send
    assert scope["type"] == "lifespan"


def served() -> Edge:
    """Serve agents, and nobody else."""
    return Edge(nothing, {}, is_https=False, mounted={PREFIX: door()})


@pytest.fixture
async def stream() -> AsyncIterator[SocketStream]:
    """Connect to the server."""
    port, stop, ready = free_port(), anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve_app, served(), "127.0.0.1", port, stop, ready=ready.set))
        await ready.wait()
        async with await anyio.connect_tcp("127.0.0.1", port) as connected:
            yield connected
        stop.set()


async def heads_of(stream: SocketStream, ends: bytes) -> bytes:
    """Read until something was said."""
    answered = b""
    with anyio.fail_after(60):
        while ends not in answered:
            answered += await stream.receive()
    return answered


async def rest_of(stream: SocketStream) -> bytes:
    """Read until the server closes."""
    answered = b""
    with anyio.fail_after(60):
        try:
            while True:
                answered += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answered


@pytest.mark.parametrize(("line", "headers", "status"), REFUSED)
async def test_a_refusal_leaves_the_connection_to_the_next_request(
    stream: SocketStream, line: str, headers: str, status: int
) -> None:
    head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {len(BODY)}\r\n"
    for _ in range(3):
        await stream.send(f"{head}Expect: 100-continue\r\n\r\n".encode())
        await heads_of(stream, b"HTTP/1.1 100 \r\n")  # the server has the head, and not the body
        await stream.send(BODY)
        answered = (await heads_of(stream, b"}")).lower()
        assert answered.count(b"http/1.1 %d" % status) == 1
        assert b"connection: close" not in answered


async def test_a_refused_body_of_any_length_has_its_answer_and_then_an_end(
    stream: SocketStream,
) -> None:
    size = 4 * endpoint.BODY_BYTES
    head = f"{STORE} HTTP/1.1\r\nHost: 127.0.0.1\r\n{JSON}Content-Length: {size}\r\n\r\n"
    await stream.send(head.encode())
    await stream.send(b" " * size)
    answered = (await rest_of(stream)).lower()
    assert answered.startswith(b"http/1.1 401")
    assert b"connection: close" in answered


async def test_a_token_does_not_open_the_door_to_bodies_without_a_bound(
    stream: SocketStream,
) -> None:
    size = 4 * endpoint.BODY_BYTES
    headers = f"{JSON}Authorization: Bearer good\r\nContent-Length: {size}\r\n\r\n"
    await stream.send(f"{STORE} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}".encode())
    await stream.send(b" " * size)
    answered = (await rest_of(stream)).lower()
    assert answered.startswith(b"http/1.1 413")
    assert b"connection: close" in answered


@pytest.mark.parametrize(
    "framing", ["Content-Length: 50\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
)
async def test_a_body_that_does_not_come_ends_the_connection_which_is_said(
    stream: SocketStream, monkeypatch: pytest.MonkeyPatch, framing: str
) -> None:
    monkeypatch.setattr(edge, "DROP_SECONDS", 0.05)
    await stream.send(f"{STORE} HTTP/1.1\r\nHost: 127.0.0.1\r\n{JSON}{framing}".encode())
    answered = (await rest_of(stream)).lower()
    assert answered.startswith(b"http/1.1 401")
    assert b"connection: close" in answered


@pytest.mark.parametrize(("version", "closes"), [("1.1", True), ("2", False)])
async def test_only_the_first_http_knows_of_closing_in_a_header(
    monkeypatch: pytest.MonkeyPatch, version: str, *, closes: bool
) -> None:
    monkeypatch.setattr(edge, "DROP_SECONDS", 0.05)
    scope = {
        "type": "http",
        "http_version": version,
        "method": "POST",
        "path": "/api/mcp/v1/store_1",
        "headers": [(b"content-length", b"50")],
    }
    outgoing: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"{", "more_body": True}

    async def send(event: Any) -> None:
        outgoing.append(event)

    await served()(scope, receive, send)
    assert outgoing[0]["status"] == 401
    assert ((b"connection", b"close") in outgoing[0]["headers"]) is closes
    assert not outgoing[-1].get("more_body")
