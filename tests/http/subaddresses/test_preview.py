"""The preview of a storefront: of the caller's own store, for 15 minutes, and without a session.

rules/service#sub-addresses.
"""

from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.http.subaddresses.conftest import SHOP
from tolsey.http.subaddresses.preview.rewriting import PreviewLinks
from tolsey.sandbox.storefronts import Storefront
from tolsey.service import Running, running
from tolsey.settings import Settings

pytestmark = pytest.mark.anyio


async def connected(live: Running, browser: httpx.AsyncClient, shop: str = SHOP) -> str:
    """Make a store that is connected to a shop, as far as a preview asks."""
    account = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "Ann's"}
    made = (await browser.post("/api/auth/signup", json=account)).json()
    body = {"organizationId": made["organization"]["id"], "name": "A store"}
    store_id: str = (await browser.post("/api/stores", json=body)).json()["id"]
    await live.service.database.execute(
        """
        INSERT INTO integration_connections (store_id, provider, shop_domain, status, connected_at)
        VALUES ($1, 'commerce', $2, 'active', now())
        """,
        store_id,
        shop,
    )
    return store_id


async def opened(browser: httpx.AsyncClient, store_id: str) -> dict[str, Any]:
    answer = await browser.post(f"/api/stores/{store_id}/preview")
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_a_preview_shows_the_storefront_and_its_links_stay_in_it(
    live: Running, browser: httpx.AsyncClient, storefront: Storefront
) -> None:
    store_id = await connected(live, browser)
    url = (await opened(browser, store_id))["url"]
    assert url.startswith("https://preview.tolsey.example/api/preview/")
    page = await browser.get(url, headers={"Cookie": "session=x", "Authorization": "Bearer y"})
    assert page.status_code == 200, page.text
    below = url.removeprefix("https://preview.tolsey.example")
    assert f"href='{below}products/mug'" in page.text
    assert f'href="{below}cart"' in page.text
    assert 'href="https://elsewhere.example/"' in page.text
    assert f'srcset="{below}a.png 1x, {below}b.png 2x"' in page.text
    # The page has no origin of ours: it can read nothing, and no session of it counts.
    policy = page.headers["content-security-policy"]
    assert "allow-same-origin" not in policy
    assert policy.startswith("sandbox ")
    assert {"cookie", "authorization", "origin"}.isdisjoint(storefront.asked[0].headers)
    # The path form on the main address shows the same.
    assert (await browser.get(below)).text == page.text


async def test_a_redirect_within_the_shop_stays_in_the_preview_and_another_is_the_browsers(
    live: Running, browser: httpx.AsyncClient
) -> None:
    url = (await opened(browser, await connected(live, browser)))["url"]
    below = url.removeprefix("https://preview.tolsey.example")
    within, out = await browser.get(f"{url}old"), await browser.get(f"{url}gone")
    assert within.headers["location"] == f"{below}new"
    assert out.headers["location"] == "https://other.example/x"


async def test_an_address_ends_after_15_minutes_and_with_the_connection(
    live: Running, browser: httpx.AsyncClient
) -> None:
    store_id = await connected(live, browser)
    said = await opened(browser, store_id)
    assert (await browser.get(said["url"])).status_code == 200
    changed = said["url"][:-6] + ("A" if said["url"][-6] != "A" else "B") + said["url"][-5:]
    assert (await browser.get(changed)).status_code == 404
    assert (await browser.post(said["url"], json={})).status_code == 405
    await live.service.database.execute(
        "UPDATE integration_connections SET status = 'disconnected' WHERE store_id = $1", store_id
    )
    assert (await browser.get(said["url"])).status_code == 404
    closed = await browser.post(f"/api/stores/{store_id}/preview")
    assert (closed.status_code, closed.json()["code"]) == (503, "never_connected")


async def test_nobody_opens_a_preview_of_anothers_store(
    live: Running, browser: httpx.AsyncClient
) -> None:
    store_id = await connected(live, browser)
    browser.cookies.clear()
    assert (await browser.post(f"/api/stores/{store_id}/preview")).status_code == 401
    account = {"email": "eve@example.com", "password": PASSWORD, "organizationName": "Eve's"}
    await browser.post("/api/auth/signup", json=account)
    assert (await browser.post(f"/api/stores/{store_id}/preview")).status_code == 404


@pytest.mark.parametrize("shop", ["localhost", "127.0.0.1", "[::1]", "169.254.169.254"])
async def test_a_preview_reaches_no_address_of_our_own_network(
    settings: Settings, storefront: Storefront, shop: str
) -> None:
    direct = settings.model_copy(update={"storefront_url": None})
    async with running(direct, timers=False, poll_seconds=0.1) as live:
        transport = httpx.ASGITransport(live.app)
        async with httpx.AsyncClient(
            transport=transport, base_url=direct.base_url, headers={"Origin": direct.base_url}
        ) as browser:
            said = await opened(browser, await connected(live, browser, shop))
            answer = await browser.get(said["url"])
    assert (answer.status_code, answer.json()["code"]) == (502, "commerce_unreachable")
    assert storefront.asked == []


def test_links_of_a_page_are_led_below_the_preview_and_nothing_else_is_touched() -> None:
    links = PreviewLinks("shop.example", "/p/")
    cases = {
        b'<a href="/">': b'<a href="/p/">',
        b'<a href="//shop.example">': b'<a href="/p/">',
        b'<a href="https://shop.example/a?b=/c">': b'<a href="/p/a?b=/c">',
        b'<a href="https://shop.example.evil/a">': b'<a href="https://shop.example.evil/a">',
        b'<a href="//cdn.example/a">': b'<a href="//cdn.example/a">',
        b"<script src=/a.js>": b"<script src=/p/a.js>",
        b'<p style="background: url(/a.png)">': b'<p style="background: url(/p/a.png)">',
        b"<p>/a and href</p>": b"<p>/a and href</p>",
    }
    assert {body: links.rewritten(body, "text/html") for body in cases} == cases
    assert links.rewritten(b'@import "/a.css"; a{b:url(/c)}', "text/css") == (
        b'@import "/p/a.css"; a{b:url(/p/c)}'
    )
    assert links.rewritten(b"href=/a", "application/json") == b"href=/a"
