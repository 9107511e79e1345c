"""The whole application behind each of its servers, spoken to byte by byte."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tests.http.serving.conftest import Serve, Served, head_of, rest_of
from tests.http.test_edge import probes
from tolsey.http.app import create_app
from tolsey.http.people import auth, organizations
from tolsey.http.stores import routes as stores
from tolsey.http.web import edge as edges
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.server import ServerUnavailable, chosen

EARLY = [
    ("POST", "/api/auth/login", "text/plain"),
    ("POST", "/api/auth/signup", "text/plain"),
    ("POST", "/api/stores", "application/json"),
    ("PUT", "/api/organizations/org_1/rules", "application/json"),
    ("POST", "/api/organizations", "application/json"),
    ("DELETE", "/api/auth/session", "application/json"),
    ("POST", "/nowhere", "application/json"),
    ("POST", "/fault/refused", "application/json"),
    ("POST", "/metrics", "application/json"),
    ("GET", "/fault/bug", "application/json"),
]
"""Requests that are answered whatever their body holds."""


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, organizations.routes, stores.routes, probes()], {})


@pytest.fixture
async def served(edge: Edge, serve: Serve) -> AsyncIterator[Served]:
    async with serve(edge) as started:
        yield started


HOST = b"Host: 127.0.0.1\r\n"
HEAD = HOST + b"Connection: close\r\n"
EMPTY_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # RFC 9113 section 6.5
SESSION = b"GET /api/auth/session HTTP/1.1\r\n" + HOST


async def test_a_request_is_answered_with_our_headers_and_no_ones_name(served: Served) -> None:
    answer = await served.asked(b"GET /api/auth/session HTTP/1.1\r\n" + HEAD + b"\r\n")
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"http/1.1 401")
    assert b"\r\nserver:" not in head
    assert b"x-content-type-options: nosniff" in head
    assert b"unauthorized" in answer


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\nContent-Length: 4\r\n",
        b"Content-Length: -1\r\n",
    ],
)
async def test_a_length_said_twice_is_never_guessed(served: Served, lengths: bytes) -> None:
    body = b"Content-Type: application/json\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n"
    answer = await served.asked(b"POST /api/auth/login HTTP/1.1\r\n" + HEAD + lengths + body)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}",
    ],
)
async def test_contradicting_lengths_end_the_connection(served: Served, lengths: bytes) -> None:
    # What follows may be another visitor's request to the proxy that sent both as one.
    request = b"POST /api/auth/login HTTP/1.1\r\n" + HOST + lengths + SESSION + b"\r\n"
    answer = await served.asked(request)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "asked",
    [
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        b"Connection: upgrade\r\nUpgrade: H2C\r\n",
        b"Upgrade: h2c\r\n",
    ],
)
async def test_no_upgrade_leads_past_a_proxy(served: Served, asked: bytes) -> None:
    # RFC 9110 section 7.8: a server may pass over an upgrade; the connection stays what it was.
    async with served.connected() as stream:
        await stream.send(SESSION + asked + b"\r\n")
        assert (await head_of(stream)).startswith(b"http/1.1 401")
        await stream.send(SESSION + b"\r\n")
        assert (await head_of(stream)).startswith(b"http/1.1 401")


async def test_the_preface_of_http_2_is_refused(served: Served) -> None:
    answer = await served.asked(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EMPTY_SETTINGS)
    assert answer.startswith((b"HTTP/1.1 505", b"HTTP/1.1 400"))
    assert b"connection: close" in answer.lower()


async def test_http_2_in_clear_text_is_spoken_where_it_is_asked_for(
    edge: Edge, serve: Serve
) -> None:
    asked_for = chosen("hypercorn", cleartext_http2=True)
    async with serve(edge, by=asked_for) as served, served.connected() as stream:
        await stream.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EMPTY_SETTINGS)
        with anyio.fail_after(60):
            assert (await stream.receive())[3:4] == EMPTY_SETTINGS[3:4]
    with pytest.raises(ServerUnavailable, match="--server hypercorn"):
        chosen("uvicorn", cleartext_http2=True)


@pytest.mark.parametrize(("method", "path", "media_type"), EARLY)
@pytest.mark.parametrize("comes", ["with it", "afterwards", "never"])
async def test_an_answer_before_the_body_costs_the_next_request_nothing(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    *,
    method: str,
    path: str,
    media_type: str,
    comes: str,
) -> None:
    """A pooled client sends its next request into the connection, unless it is told not to."""
    if comes == "never":
        monkeypatch.setattr(edges, "DROP_SECONDS", 0.05)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n"
    async with served.connected() as stream:
        await stream.send(head.encode() + b"Content-Length: 12\r\n\r\n" + b"[1, 2,")
        if comes == "never":
            answer = await rest_of(stream)
            assert b"connection: close" in answer.lower()
            return
        if comes == "afterwards":
            await anyio.wait_all_tasks_blocked()
        await stream.send(b" 3, 4]")
        assert b"connection: close" not in await head_of(stream)
        await stream.send(SESSION + b"\r\n")
        assert (await head_of(stream)).startswith(b"http/1.1 401")


async def test_the_rest_of_a_body_that_comes_in_parts_holds_no_answer_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Quart reads, too, and may be the one that takes the end.
    monkeypatch.setattr(edges, "DROP_SECONDS", 3600)
    head = b"POST /api/stores HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    async with served.connected() as stream:
        await stream.send(head + b"Content-Length: 12\r\n\r\n[")
        for part in (b"1, 2", b", 3, ", b"4", b"]"):
            await anyio.wait_all_tasks_blocked()
            await stream.send(part)
        assert (await head_of(stream)).startswith(b"http/1.1 401")


async def test_a_body_too_large_is_refused_before_it_is_read(served: Served) -> None:
    text = b"Content-Type: application/json\r\nContent-Length: 1048577\r\n\r\n"
    answer = await served.asked(b"POST /api/auth/login HTTP/1.1\r\n" + HEAD + text)
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_head_too_large_is_refused(served: Served) -> None:
    long = b"X-Long: " + b"x" * 17_000 + b"\r\n"
    answer = await served.asked(b"GET / HTTP/1.1\r\n" + HEAD + long + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431")
