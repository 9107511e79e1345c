"""What the tests of this folder that attack the service share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.http.people import PASSWORD, Person
from tests.http.test_tenants import address_of, body_of
from tests.journeys.conftest import EVENTS, SHOP, Seller
from tests.timing import until
from tolsey.http.web.edge import Edge
from tolsey.service import Running

LISTINGS = "/api/sell/listings"
PUBLIC = "/api/public/listings"
ABSENT = {
    "organization_id": "org_0190f0c4a7c07b8f9d52d7e1f0a1b2c3",
    "store_id": "store_0190f0c4a7c07b8f9d52d7e1f0a1b2c3",
    "listing_id": "listing_0190f0c4a7c07b8f9d52d7e1f0a1b2c3",
    "user_id": "usr_0190f0c4a7c07b8f9d52d7e1f0a1b2c3",
}
"""Ids of nothing."""
FORBIDDEN_WORDS = ("traceback", "select ", "insert ", "update ", "asyncpg", 'file "', "/tolsey/")
"""What an answer may never show of the inside."""


@asynccontextmanager
async def browsing(
    live: Running, address: str = "127.0.0.1", **headers: str
) -> AsyncIterator[httpx.AsyncClient]:
    """Open a browser of someone else, from an address."""
    base_url = live.service.settings.base_url
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(live.app, client=(address, 4711), raise_app_exceptions=False),
        base_url=base_url,
        headers={"Origin": base_url, **headers},
    ) as client:
        yield client


async def person(browser: httpx.AsyncClient, email: str) -> Person:
    """Sign someone up."""
    body = {"email": email, "password": PASSWORD, "organizationName": "A company"}
    made = await browser.post("/api/auth/signup", json=body)
    assert made.status_code == 201, made.text
    said = made.json()
    return Person(browser, said["user"]["id"], said["organization"]["id"], email)


async def listing_of(seller: Seller, **given: Any) -> dict[str, Any]:
    """Start a draft of the seller's."""
    body = {"organizationId": seller.organization_id, "title": "A business", **given}
    made = await seller.browser.post(LISTINGS, json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def verify(seller: Seller, listing: dict[str, Any], secret: str) -> httpx.Response:
    """Connect a listing to the shop and have it read."""
    return await seller.post(
        f"{LISTINGS}/{listing['id']}/verify/commerce",
        shopDomain=SHOP,
        clientId="client-1",
        clientSecret=secret,
    )


async def waits(live: Running) -> bool:
    """Tell whether anything is in the outbox, due or not."""
    return bool(await live.service.database.fetch("SELECT 1 FROM outbox LIMIT 1"))


async def quiet(live: Running) -> None:
    """Wait until nothing is left to do in the service."""
    runtime = live.service.runtime

    async def is_done() -> bool:
        return not (runtime.admin.effects_in_flight or runtime.admin.waiting or await waits(live))

    await until(is_done)


def same(one: httpx.Response, other: httpx.Response) -> bool:
    """Tell whether two answers are the same, letter for letter; what is left of a limit differs."""

    def headers(answer: httpx.Response) -> list[tuple[str, str]]:
        return [pair for pair in answer.headers.multi_items() if pair[0] != "ratelimit"]

    return (one.status_code, one.content, headers(one)) == (
        other.status_code,
        other.content,
        headers(other),
    )


def edge_of(live: Running) -> Edge:
    """Give the application with its routes."""
    assert isinstance(live.app, Edge)
    return live.app


async def asked(
    who: httpx.AsyncClient, method: str, rule: str, things: dict[str, str], **changed: Any
) -> httpx.Response:
    """Call a route about somebody's things."""
    body = None if method in {"GET", "DELETE"} else {**body_of(rule, things), **changed}
    headers = {"X-Request-Id": "the-same"}
    return await who.request(method, address_of(rule, things), json=body, headers=headers)


async def digest(live: Running) -> list[Any]:
    """Sum up the rows of everyone's things."""
    tables = ("organizations", "members", "stores", "listings", "integration_connections")
    query = "SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t"
    return [await live.service.database.fetchrow(query.format(name)) for name in tables]


async def deliver(
    browser: httpx.AsyncClient, body: bytes, headers: dict[str, str] | list[tuple[str, str]]
) -> httpx.Response:
    return await browser.post(EVENTS, content=body, headers=headers)
