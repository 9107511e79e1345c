"""Clients known by a document of their own (Client ID Metadata Documents), and what is tried with one.

The documents are served over real HTTP; only what makes them HTTPS is stood in for.
"""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import httpcore
import httpx
import pytest

from tests.http.conftest import nobody_else
from tests.http.oauth.client import CALLBACK, Client
from tests.http.oauth.conftest import Connect
from tests.http.people import Clock, Person
from tests.journeys.conftest import free_port
from tolsey.http.clients.guard import ForbiddenAddress, guarded_client
from tolsey.http.oauth import documents
from tolsey.http.oauth.agents import Agents
from tolsey.http.oauth.documents import Documents
from tolsey.http.oauth.parameters import InvalidClient
from tolsey.http.web.context import Service
from tolsey.server import serve_app

pytestmark = pytest.mark.anyio

HOST = "https://robo.example"
ID = f"{HOST}/oauth/client.json"


def about(client_id: str = ID, **changed: Any) -> dict[str, Any]:
    """Write a document as it should be, or otherwise."""
    said = {
        "client_id": client_id,
        "client_name": "Robo",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        **changed,
    }
    return {name: value for name, value in said.items() if value is not None}


@dataclass
class Site:
    """The site of whoever wrote a client."""

    body: bytes = json.dumps(about()).encode()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)

    def says(self, **changed: Any) -> None:
        """Say something else."""
        self.body = json.dumps(about(**changed)).encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (event := await receive())["type"] != "lifespan.shutdown":
                await send({"type": event["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        self.asked.append({name.decode(): value.decode() for name, value in scope["headers"]})
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        while self.drips:
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await anyio.sleep(0.01)
        await send({"type": "http.response.body", "body": self.body})


class Plain(httpx.AsyncHTTPTransport):
    """Reaches every https address at one place of this machine, without TLS."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        return await super().handle_async_request(request)


@pytest.fixture
async def site() -> AsyncIterator[tuple[Site, int]]:
    port, stop, served = free_port(), anyio.Event(), Site()
    async with anyio.create_task_group() as tasks:
        ready = anyio.Event()
        serve = partial(serve_app, ready=ready.set, grace_seconds=0.1)
        tasks.start_soon(serve, served, "127.0.0.1", port, stop)
        await ready.wait()
        yield served, port
        stop.set()


@pytest.fixture
async def reader(site: tuple[Site, int], clock: Clock) -> AsyncIterator[Documents]:
    """Read documents as the service does."""
    async with httpx.AsyncClient(transport=Plain(site[1]), follow_redirects=False) as web:
        yield Documents(web, clock)


@pytest.fixture
async def robo(site: tuple[Site, int]) -> Site:
    return site[0]


@pytest.fixture
async def service(service: Service, site: tuple[Site, int], clock: Clock) -> AsyncIterator[Service]:
    web = httpx.AsyncClient(transport=Plain(site[1]), follow_redirects=False)
    agents = Agents.of(service.settings, service.database, clock, nobody_else, documents=web)
    yield replace(service, agents=agents)
    await agents.close()


Come = Callable[..., Awaitable[tuple[Client, Person]]]


@pytest.fixture
async def come(connect: Connect) -> Come:
    """Come with a document instead of a registration."""

    async def came(client_id: str = ID) -> tuple[Client, Person]:
        client, ann = await connect()
        client.client_id = client_id
        return client, ann

    return came


async def test_a_client_with_a_document_needs_no_registration(
    come: Come, robo: Site, clock: Clock
) -> None:
    client, ann = await come()
    page = await client.consent_page(ann)
    assert "Robo" in page.text
    assert ID in page.text
    tokens = await client.tokens(ann)
    assert (await client.call(tokens["access_token"])).status_code == 200
    clock.advance(timedelta(hours=25))
    assert (await client.refresh(tokens["refresh_token"])).status_code == 200
    assert robo.asked[0]["accept-encoding"] == "identity"
    assert "authorization" not in robo.asked[0]


async def test_a_client_that_publishes_no_port_comes_with_the_one_that_is_free(
    come: Come, robo: Site
) -> None:
    client, ann = await come()
    robo.says(redirect_uris=["http://localhost/callback", "http://127.0.0.1/callback"])
    for host in ("localhost", "127.0.0.1"):
        client.redirect_uri = f"http://{host}:3118/callback"
        page = await client.consent_page(ann)
        assert f"{host}:3118" in page.text
        assert "a program on your own computer" in page.text


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://robo.example/other.json"},
        {"client_id": None},
        {"client_name": None},
        {"client_name": " "},
        {"client_name": "\u3164"},
        {"client_name": "Robo\u202eknab"},
        {"client_name": "Robo\x00"},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": CALLBACK},
        {"redirect_uris": [CALLBACK, "javascript:alert(1)"]},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": [CALLBACK] * 21},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"client_secret": "word"},
    ],
)
async def test_a_document_that_is_not_as_it_should_be_lets_nobody_in(
    reader: Documents, robo: Site, changed: dict[str, Any]
) -> None:
    robo.says(**changed)
    with pytest.raises(InvalidClient):
        await reader.client(ID)
    assert len(robo.asked) == 1


async def test_nobody_is_sent_where_the_document_does_not_say(come: Come, robo: Site) -> None:
    client, ann = await come()
    robo.says(redirect_uris=["https://agent.example/other"])
    answer = await ann.browser.get(client.asked())
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert len(robo.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!doctype html>",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"client_id":' + b"[" * 2000,
        json.dumps(about(note="a" * 5 * 1024)).encode(),
    ],
)
async def test_what_is_no_document_or_too_large_lets_nobody_in(
    reader: Documents, robo: Site, body: bytes
) -> None:
    robo.body = body
    with pytest.raises(InvalidClient):
        await reader.client(ID)


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 308, 401, 404, 500])
async def test_only_an_answer_of_200_counts_and_no_redirect_is_followed(
    reader: Documents, robo: Site, status: int
) -> None:
    robo.status = status
    robo.headers = {"Location": f"{HOST}/elsewhere.json"}
    if status == 204:
        robo.body = b""
    with pytest.raises(InvalidClient):
        await reader.client(ID)
    assert len(robo.asked) == 1


async def test_a_document_that_drips_is_given_up(
    reader: Documents, robo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "SECONDS", 0.1)
    monkeypatch.setattr(documents, "MOST_BYTES", 1 << 30)
    robo.drips = True
    with anyio.fail_after(60), pytest.raises(InvalidClient):
        await reader.client(ID)


async def test_an_error_is_not_remembered_but_a_document_is(
    come: Come, robo: Site, clock: Clock
) -> None:
    client, ann = await come()
    robo.status = 500
    assert (await ann.browser.get(client.asked())).status_code == 400
    robo.status, robo.headers = 200, {"Cache-Control": "public, max-age=600"}
    assert (await ann.browser.get(client.asked())).status_code == 303
    robo.says(redirect_uris=["https://agent.example/new"])
    clock.advance(timedelta(minutes=9))
    assert (await ann.browser.get(client.asked())).status_code == 303
    assert len(robo.asked) == 2
    clock.advance(timedelta(minutes=2))
    assert (await ann.browser.get(client.asked())).status_code == 400


@pytest.mark.parametrize(
    ("said", "ages"),
    [
        ("no-store", (59, 61)),
        ("max-age=0", (59, 61)),
        ("", (59, 61)),
        ("max-age=999999999", (23 * 3600, 25 * 3600)),
    ],
)
async def test_a_document_is_kept_for_a_minute_at_least_and_a_day_at_most(
    reader: Documents, robo: Site, clock: Clock, said: str, ages: tuple[int, int]
) -> None:
    robo.headers = {"Cache-Control": said}
    begun = clock.now
    for age, asked in ((0, 1), (ages[0], 1), (ages[1], 2)):
        clock.now = begun + timedelta(seconds=age)
        assert (await reader.client(ID)).name == "Robo"
        assert len(robo.asked) == asked


async def test_a_site_learns_nothing_of_another_visit(
    reader: Documents, robo: Site, clock: Clock
) -> None:
    robo.headers = {"Set-Cookie": "visit=1; Path=/"}
    for _ in range(2):
        await reader.client(ID)
        clock.advance(timedelta(hours=25))
    assert len(robo.asked) == 2
    assert "cookie" not in robo.asked[-1]


@pytest.mark.parametrize(
    "client_id",
    [
        "http://robo.example/oauth/client.json",
        "https://robo.example",
        "https://robo.example/",
        "https://robo.example/?client.json",
        "https://robo.example/oauth/client.json#here",
        "https://robo.example/oauth/../client.json",
        "https://robo.example/./client.json",
        "https://robo.example/oauth/%2e%2e/client.json",
        "https://robo.example/oauth/.%2E",
        "https://user:word@robo.example/client.json",
        "https://robo.example\\@evil.example/client.json",
        "https://robo.example:8443/client.json",
        "https://robo.example:x/client.json",
        "https://127.0.0.1/client.json",
        "https://127.1/client.json",
        "https://2130706433/client.json",
        "https://0x7f000001/client.json",
        "https://0x7f.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:127.0.0.1]/client.json",
        "https://[/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/client.json",
        "https://localhost/client.json",
        "https://intranet/client.json",
        "https://robo.example./client.json",
        "https://robo..example/client.json",
        "https://\u0430gent.example/client.json",
        "https://robo.example/client\x01.json",
        "https://robo.example/client\n.json",
        "https://robo.example/client .json",
        "https://robo.example/" + "a" * 2000,
    ],
)
async def test_an_address_that_is_not_plainly_a_documents_is_never_fetched(
    reader: Documents, robo: Site, client_id: str
) -> None:
    robo.body = json.dumps(about(client_id)).encode()
    with pytest.raises(InvalidClient):
        await reader.client(client_id)
    assert robo.asked == []


@pytest.mark.parametrize(
    "client_id",
    [
        "http://robo.example/oauth/client.json",
        "https://127.0.0.1/client.json",
        "https://xn--a.example/client.json",
        "https://robo.example/client\x01.json",
    ],
)
async def test_whoever_names_such_an_address_is_told_that_the_client_is_not_known(
    come: Come, client_id: str
) -> None:
    client, ann = await come(client_id)
    assert (await ann.browser.get(client.asked())).status_code == 400
    answered = await client.refresh("nothing")
    assert (answered.status_code, answered.json()["error"]) == (401, "invalid_client")


class Recording(httpcore.AsyncMockBackend):
    """Notes where a connection would be opened."""

    def __init__(self) -> None:
        super().__init__([])
        self.opened: list[str] = []

    async def connect_tcp(self, host: str, *args: Any, **options: Any) -> Any:
        del args, options
        self.opened.append(host)
        raise httpcore.ConnectError("nobody is there")


def resolving(*answers: str) -> Callable[[str, int], Awaitable[list[str]]]:
    """Resolve every name to the next of these answers, of which the last holds for good."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        return (left.pop(0) if len(left) > 1 else left[0]).split()

    return resolve


@pytest.mark.parametrize(
    "addresses",
    [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "64:ff9b::7f00:1",
        "fd00::1",
        "0.0.0.0",  # noqa: S104 - an address to refuse
        "93.184.216.34 127.0.0.1",
    ],
)
async def test_a_name_that_leads_into_our_own_network_is_not_called(
    clock: Clock, addresses: str
) -> None:
    backend = Recording()
    async with guarded_client(resolver=resolving(addresses), inner=backend) as web:
        with pytest.raises(InvalidClient):
            await Documents(web, clock).client(ID)
    assert backend.opened == []


async def test_a_name_that_changes_its_mind_is_called_where_it_was_checked(clock: Clock) -> None:
    backend = Recording()
    resolver = resolving("93.184.216.34", "127.0.0.1")
    async with guarded_client(resolver=resolver, inner=backend) as web:
        for _ in range(2):
            with pytest.raises(InvalidClient):
                await Documents(web, clock).client(ID)
    assert backend.opened == ["93.184.216.34"]


async def test_the_service_itself_fetches_through_the_guard(
    service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(*asked: Any, **options: Any) -> list[Any]:
        del asked, options
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]

    monkeypatch.setattr(anyio, "getaddrinfo", answer)
    agents = Agents.of(service.settings, service.database, clock, nobody_else)
    with pytest.raises(InvalidClient) as caught:
        await agents.clients.find(ID)
    await agents.close()
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert isinstance(caught.value.__cause__.__cause__, ForbiddenAddress)
