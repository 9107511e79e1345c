"""The sub-address of agents, which answers for stores' endpoints and for nothing else.

rules/service#sub-addresses; rules/agents#authorization.
"""

import pytest

from tests.http.oauth.client import Client
from tests.http.oauth.conftest import Connect
from tests.http.people import Browser, settings_of
from tolsey.http.oauth.resources import StoreResources
from tolsey.settings import Settings

pytestmark = pytest.mark.anyio

BASE = "http://localhost:8000"
MCP = "http://mcp.localhost:8000"
CROSS_ORIGIN = ("access-control-", "cross-origin-")


@pytest.fixture
def settings() -> Settings:
    return settings_of(base_url=BASE, next_public_live_subdomains="mcp")


def here(client: Client) -> str:
    """Write the address of a client's store."""
    return f"{MCP}/{client.store_id}"


async def test_a_refused_call_leads_from_the_sub_address_to_the_base_address(
    connect: Connect,
) -> None:
    client, _ = await connect()
    refused = await client.call("nothing", here(client))
    assert refused.status_code == 401
    described = f"{MCP}/.well-known/oauth-protected-resource/{client.store_id}"
    assert f'resource_metadata="{described}"' in refused.headers["www-authenticate"]
    resource = await client.web.get(described)
    assert resource.json()["resource"] == here(client)
    assert resource.json()["authorization_servers"] == [BASE]
    assert resource.headers["access-control-allow-origin"] == "*"


async def test_pages_of_anywhere_read_what_an_address_is_on_both_forms(
    connect: Connect, browser: Browser
) -> None:
    client, _ = await connect()
    page = browser(Origin="https://inspector.example")
    described = "/.well-known/oauth-protected-resource"
    asked = {"Access-Control-Request-Headers": "mcp-protocol-version"}
    answered = []
    for address in (
        f"{BASE}{described}/api/mcp/v1/{client.store_id}",
        f"{MCP}{described}/{client.store_id}",
    ):
        asking = await page.options(address, headers=asked)
        read = await page.get(address)
        assert (asking.status_code, read.status_code) == (204, 200)
        shares = [
            {name: one for name, one in answer.headers.items() if name.startswith(CROSS_ORIGIN)}
            for answer in (asking, read)
        ]
        assert shares[0] == shares[1]
        assert shares[0]["access-control-allow-origin"] == "*"
        assert "MCP-Protocol-Version" in shares[0]["access-control-allow-headers"]
        answered.append((shares, read.headers["cache-control"]))
    assert answered[0] == answered[1]


async def test_a_token_for_the_sub_address_opens_it_and_no_other_form(connect: Connect) -> None:
    client, ann = await connect()
    answered = await client.decided(ann, resource=here(client))
    assert answered["iss"] == BASE
    answer = await client.redeem(answered["code"], resource=here(client))
    token = answer.json()["access_token"]
    forms = [here(client), f"/api/mcp/v1/{client.store_id}", f"/api/mcp/{client.store_id}"]
    statuses = [(await client.call(token, form)).status_code for form in forms]
    assert statuses == [200, 401, 401]


async def test_a_token_for_the_base_address_does_not_open_the_sub_address(connect: Connect) -> None:
    client, ann = await connect()
    address = f"{BASE}/api/mcp/v1/{client.store_id}"
    code = (await client.decided(ann, resource=address))["code"]
    token = (await client.redeem(code, resource=address)).json()["access_token"]
    assert (await client.call(token)).status_code == 200
    assert (await client.call(token, here(client))).status_code == 401


async def test_an_unknown_store_is_described_and_refused_like_a_known_one(connect: Connect) -> None:
    client, _ = await connect()
    unknown = f"{MCP}/store_unknown"
    answered, known = await client.call("x", unknown), await client.call("x", here(client))
    assert (answered.status_code, answered.json()["detail"]) == (401, known.json()["detail"])
    described = await client.web.get(f"{MCP}/.well-known/oauth-protected-resource/store_unknown")
    assert described.json()["resource"] == unknown


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//{store}",
        "/{store}/x",
        "/api/mcp/{store}",
        "/api/mcp/v1/{store}",
        "/api/auth/session",
        "/api/health",
        "/account/agents",
        "/oauth/authorize",
        "/oauth/token",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/api/mcp/v1/{store}",
        "/openapi.json",
    ],
)
async def test_every_other_path_of_the_sub_address_is_nothing(connect: Connect, path: str) -> None:
    client, ann = await connect()
    cookie = {"Cookie": f"session={ann.browser.cookies['session']}"}
    address = f"{MCP}{path.format(store=client.store_id)}"
    for method in ("GET", "POST"):
        answer = await client.web.request(method, address, headers=cookie)
        assert answer.status_code == 404, method
        assert "set-cookie" not in answer.headers


async def test_the_sub_address_is_found_however_its_host_is_written(connect: Connect) -> None:
    client, ann = await connect()
    code = (await client.decided(ann, resource=f"HTTP://MCP.localhost:8000/{client.store_id}/"))[
        "code"
    ]
    token = (await client.redeem(code, resource=here(client))).json()["access_token"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {token}", "Host": "MCP.LocalHost:8000"}
    answer = await client.web.post(here(client), json=message, headers=headers)
    assert answer.status_code == 200, answer.text


async def test_a_page_of_elsewhere_cannot_call_the_sub_address(browser: Browser) -> None:
    page = browser(Origin="https://evil.example")
    answer = await page.post(f"{MCP}/store_1", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize(
    ("named", "resource"),
    [
        ("https://mcp.tolsey.example/store_1", "https://mcp.tolsey.example/store_1"),
        ("HTTPS://MCP.tolsey.example/store_1/", "https://mcp.tolsey.example/store_1"),
        ("https://tolsey.example/api/mcp/store_1", "https://tolsey.example/api/mcp/store_1"),
        ("https://mcp.tolsey.example/Store_1", "https://mcp.tolsey.example/Store_1"),
        ("http://mcp.tolsey.example/store_1", None),
        ("https://mcp.tolsey.example:443/store_1", None),
        ("https://mcp.tolsey.example/api/mcp/v1/store_1", None),
        ("https://tolsey.example/store_1", None),
        ("https://user@mcp.tolsey.example/store_1", None),
        ("https://mcp.tolsey.example.evil.example/store_1", None),
    ],
)
def test_a_resource_is_one_of_our_addresses_and_no_other(named: str, resource: str | None) -> None:
    live = settings_of(base_url="https://tolsey.example", next_public_live_subdomains="mcp")
    found = StoreResources(live).named(named)
    assert (found and found.resource) == resource


def test_a_sub_address_that_is_not_live_is_nobodys() -> None:
    resources = StoreResources(settings_of(base_url="https://tolsey.example"))
    assert resources.named("https://mcp.tolsey.example/store_1") is None
    assert resources.host is None
    assert resources.origins == ("https://tolsey.example",)
