"""Each sub-address answers its own surface and nothing else, however its host is written.

rules/service#sub-addresses; everything is asked of one port, told apart by `Host`.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.http.people import settings_of
from tests.http.subaddresses.others import FILE, AssetServer
from tolsey.http.layout.assets import STYLE_ADDRESS
from tolsey.service import Running, running
from tolsey.setting_types import SUBDOMAINS
from tolsey.settings import Settings

pytestmark = pytest.mark.anyio

HERE = "https://10.0.0.1:8000"
SURFACES = {
    "mcp": ("/.well-known/oauth-protected-resource/store_1", 200),
    "api": ("/stores", 401),
    "hooks": ("/payments", 405),
    "status": (STYLE_ADDRESS, 200),
    "docs": ("/start", 308),
    "cdn": ("/media/a%20b.png", 200),
    "preview": ("/api/preview/x/", 404),
}
"""A path of each sub-address's own surface, and what it answers to a stranger."""
NOTHING = (
    "/login",
    "/api/health",
    "/api/auth/session",
    "/api/intelligence/stores",
    "/api/webhooks/payments",
    "/api/admin/actors",
    "/metrics",
    "/openapi.json",
    "/docs/start/",
    "//login",
    "/../login",
    "/%2e%2e/login",
)


def spellings(host: str) -> Iterator[str]:
    """Write a host in the ways that mean it: two of each trick."""
    yield from (host.upper(), host.title())
    yield from (f"{host}.", f"{host.upper()}.")
    yield from (f"{host}:443", f"{host}.:443")


def strangers(host: str) -> Iterator[str]:
    """Write hosts that are none of ours and look like one."""
    yield from (f"{host}:8443", f"{host}.:80")
    yield from (f"{host}.evil.example", f"evil-{host}")
    yield from (f"x@{host}", f"{host}, evil.example", f"{host}..", "")


@asynccontextmanager
async def asking(live: Running) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(live.app)
    async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
        yield client


async def test_each_sub_address_answers_its_surface_under_each_spelling_and_nothing_else(
    live: Running,
) -> None:
    async with asking(live) as client:
        for name in SUBDOMAINS:
            host = f"{name}.tolsey.example"
            path, status = SURFACES[name]
            for spelt in (host, *spellings(host)):
                answer = await client.get(path, headers={"Host": spelt})
                assert answer.status_code == status, (spelt, answer.text)
            for other in NOTHING:
                answer = await client.get(f"{HERE}{other}", headers={"Host": host})
                is_store = name == "mcp" and other in {"/login", "/metrics", "/../login"}
                wanted = 405 if is_store else {"docs": 308}.get(name, 404)
                assert answer.status_code == wanted, (host, other)
                assert "set-cookie" not in answer.headers


async def test_a_host_that_is_none_of_ours_is_misdirected_but_for_what_machines_ask(
    live: Running,
) -> None:
    async with asking(live) as client:
        for host in [
            one
            for name in ("", *(f"{name}." for name in sorted(SUBDOMAINS)))
            for one in strangers(f"{name}tolsey.example")
        ]:
            answer = await client.get("/login", headers={"Host": host})
            assert (answer.status_code, answer.json()["code"]) == (421, "misdirected_request"), host
            health = await client.get("/api/health", headers={"Host": host})
            metrics = await client.get("/metrics", headers={"Host": host})
            # The token is missing; what matters is that a scraper is not misdirected.
            assert (health.status_code, metrics.status_code) == (200, 503), host
        for own in ("tolsey.example", *spellings("tolsey.example")):
            assert (await client.get("/login", headers={"Host": own})).status_code == 200, own


@pytest.mark.parametrize("first", ["tolsey.example", "status.tolsey.example"])
@pytest.mark.parametrize("second", ["tolsey.example", "docs.tolsey.example", "evil.example"])
async def test_two_hosts_are_refused_in_either_order_even_when_they_agree(
    live: Running, first: str, second: str
) -> None:
    async with asking(live) as client:
        for pair in ((first, second), (second, first)):
            headers = [("Host", one) for one in pair]
            answer = await client.get("/login", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (400, "ambiguous_host")


async def test_on_its_own_machine_a_service_answers_under_any_name_and_port(
    settings: Settings,
) -> None:
    local = settings.model_copy(update={"base_url": "http://127.0.0.1:8000"})
    async with running(local, timers=False) as live, asking(live) as client:
        for host in ("tolsey.example", "localhost:9", "127.0.0.1"):
            assert (await client.get("/login", headers={"Host": host})).status_code == 200
        for host in ("docs.127.0.0.1", "docs.127.0.0.1:8000", "Docs.127.0.0.1.:9"):
            answer = await client.get("/start", headers={"Host": host})
            assert answer.headers["location"] == "http://127.0.0.1:8000/docs/start"


async def test_a_sub_address_that_is_not_listed_is_nothing(
    database_url: str, redis_url: str
) -> None:
    settings = settings_of(
        database_url=database_url, redis_url=redis_url, base_url="https://tolsey.example"
    )
    async with running(settings, timers=False) as live, asking(live) as client:
        for name in SUBDOMAINS:
            path, _ = SURFACES[name]
            for spelt in (f"{name}.tolsey.example", *spellings(f"{name}.tolsey.example")):
                answer = await client.get(path, headers={"Host": spelt})
                assert answer.status_code == 404, spelt
        # The forms on the main address are there all the same.
        here = {"Host": "tolsey.example"}
        forms = (
            "/api/intelligence/stores",
            "/docs/start",
            "/api/preview/x/",
            "/api/mcp/v1/store_1",
        )
        answered = [(await client.get(path, headers=here)).status_code for path in forms]
        assert answered == [401, 200, 404, 405]


async def test_a_session_counts_on_no_sub_address(
    live: Running, browser: httpx.AsyncClient
) -> None:
    signed = await browser.post(
        "/api/auth/signup",
        json={
            "email": "ann@example.com",
            "password": "correct horse battery",
            "organizationName": "Ann's",
        },
    )
    assert signed.status_code == 201
    cookie = f"__Host-session={browser.cookies['__Host-session']}"
    async with asking(live) as client:
        for name in SUBDOMAINS:
            headers = {"Host": f"{name}.tolsey.example", "Cookie": cookie}
            for path in (SURFACES[name][0], "/login", "/"):
                answer = await client.get(path, headers=headers)
                assert "ann@example.com" not in answer.text
                assert "set-cookie" not in answer.headers


async def test_documents_are_led_to_one_path_of_the_main_address(live: Running) -> None:
    wanted = {
        "/start": "/docs/start",
        "/operate/settings/?a=1": "/docs/operate/settings?a=1",
        "/": "/docs",
        "//evil.example/x": "/docs//evil.example/x",
        "/%0d%0aSet-Cookie:%20a=b": "/docs/%0D%0ASet-Cookie%3A%20a%3Db",
        "/@evil.example": "/docs/%40evil.example",
    }
    async with asking(live) as client:
        for path, leads in wanted.items():
            for method in ("GET", "HEAD", "POST"):
                answer = await client.request(
                    method, f"{HERE}{path}", headers={"Host": "docs.tolsey.example"}
                )
                assert answer.status_code == 308
                assert answer.headers["location"] == f"https://tolsey.example{leads}"


async def test_webhooks_and_the_intelligence_api_are_as_on_the_main_address(live: Running) -> None:
    asked = (
        ("hooks", "/commerce/events", "/api/webhooks/commerce/events"),
        ("hooks", "/payments", "/api/webhooks/payments"),
        *(
            ("hooks", f"/{one}", f"/api/webhooks/{one}")
            for one in ("mail", "code-host", "messaging")
        ),
        ("api", "/stores", "/api/intelligence/stores"),
        ("api", "/scans", "/api/intelligence/scans"),
    )
    async with asking(live) as client:
        for name, short, long in asked:
            there = await client.post(short, headers={"Host": f"{name}.tolsey.example"}, json={})
            here = await client.post(long, headers={"Host": "tolsey.example"}, json={})
            same = [(one.status_code, one.json()["code"]) for one in (there, here)]
            assert same[0] == same[1]
            assert same[0][0] != 404


async def test_files_come_from_their_labels_storage_with_nothing_of_who_asks(
    live: Running, assets: AssetServer
) -> None:
    host = {"Host": "cdn.tolsey.example"}
    async with asking(live) as client:
        whole = await client.get(
            "/media/a%20b.png", headers={**host, "Cookie": "a=b", "Authorization": "Bearer x"}
        )
        head = await client.head("/media/a%20b.png", headers=host)
        part = await client.get("/media/a%20b.png", headers={**host, "Range": "bytes=2-4"})
        refused = {
            path: (await client.get(path, headers=host)).status_code
            for path in (
                "/",
                "/media",
                "/media/",
                "/other/a.png",
                "/media/absent",
                "/media/../a%20b.png",
                "/media/%2e%2e/a",
                "/media/away",
                "/media/broken",
            )
        }
        written = await client.put("/media/a%20b.png", headers=host)
    assert (whole.status_code, whole.content, whole.headers["etag"]) == (200, FILE, '"1"')
    assert whole.headers["access-control-allow-origin"] == "*"
    assert whole.headers["content-security-policy"].startswith("default-src 'none'")
    assert "set-cookie" not in whole.headers
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "10")
    assert (part.status_code, part.content) == (206, FILE[2:5])
    assert {"cookie", "authorization"}.isdisjoint(assets.asked[0][1])
    assert refused == {
        **dict.fromkeys(refused, 404),
        "/media/away": 503,
        "/media/broken": 503,
    }
    assert written.status_code == 405
