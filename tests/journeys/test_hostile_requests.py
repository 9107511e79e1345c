"""Requests that ask for more than their sender may have."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.http.people import PASSWORD, Person
from tests.http.test_tenants import body_of, routes_of, things_of
from tests.journeys.conftest import SECRET, SHOP, Seller
from tests.journeys.strangers import (
    FORBIDDEN_WORDS,
    LISTINGS,
    PUBLIC,
    asked,
    browsing,
    digest,
    edge_of,
    listing_of,
    person,
    quiet,
    verify,
)
from tolsey.http.web.access import Access
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.cache import Cache

GREEDY = {
    "id": "org_1",
    "role": "owner",
    "plan": "max_20x",
    "status": "ACTIVE",
    "state": "verified",
    "verification": {"state": "verified"},
    "slug": "apple",
    "isAdministrator": True,
    "banned": False,
    "userId": "usr_1",
    "createdBy": "usr_1",
    "revenue30d": 10**9,
    "refreshToken": "shpat_1",
    "__proto__": {},
    "organization_id": "org_1",
}
MONEY = {"amount": 5_000_000, "currency": "USD"}


@pytest.fixture
async def owner(browser: httpx.AsyncClient) -> Person:
    return await person(browser, "owner@example.com")


@pytest.fixture
async def stranger(live: Running) -> AsyncIterator[Person]:
    async with browsing(live) as client:
        yield await person(client, "stranger@example.com")


async def test_no_field_that_was_not_asked_for_is_taken(live: Running, owner: Person) -> None:
    things = await things_of(owner)
    before = await digest(live)
    tried = 0
    for method, rule, access in routes_of(edge_of(live)):
        body = None if method in {"GET", "DELETE"} else body_of(rule, things)
        if access is not Access.SESSION or not body or body == {"reason": "none"}:
            continue
        if rule.endswith("/rules"):  # an object kept whole
            continue
        for name, value in GREEDY.items():
            if name in body:
                continue
            answer = await asked(owner.browser, method, rule, things, **{name: value})
            assert answer.status_code == 422, f"{method} {rule} takes {name}"
            assert answer.json()["errors"][0]["field"] == name
            tried += 1
    for path in ("signup", "login"):
        who = {"email": "x@example.com", "password": PASSWORD}
        body = {**who, "organizationName": "x"} if path == "signup" else who
        for name, value in GREEDY.items():
            answer = await owner.browser.post(f"/api/auth/{path}", json={**body, name: value})
            assert answer.status_code == 422, f"{path} takes {name}"
    assert tried > 100
    assert await digest(live) == before


def cursor(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


TAMPERED = (
    "x",
    "%%%",
    cursor("abc"),
    cursor("-1"),
    cursor("-5"),
    cursor("1.5"),
    cursor("9" * 30),
    cursor("٣"),
    cursor("1 OR 1=1"),
    cursor("' OR '1'='1"),
    cursor("2026-01-01|x"),
    cursor("9999-99-99T00:00:00|x"),
    cursor("2026-01-01T00:00:00+00:00"),
    cursor("0001-01-01T00:00:00+14:00|x"),
    cursor("|||"),
    cursor(b"\xff\xfe"),
    cursor("a\x00b"),
    "A" * 600,
)


async def test_a_cursor_of_ones_own_making_shows_nothing_foreign_and_breaks_nothing(
    operator: httpx.AsyncClient, seller: Seller, stranger: Person
) -> None:
    await listing_of(seller)
    for tampered in TAMPERED:
        for path in ("/api/organizations", "/api/stores", LISTINGS, PUBLIC):
            answer = await stranger.browser.get(path, params={"cursor": tampered})
            assert answer.status_code in {200, 400, 422}, f"{path} {tampered}: {answer.text}"
            assert seller.organization_id not in answer.text
            assert seller.store_id not in answer.text
        for path in ("actors", "dead-letters", "audit", "webhooks"):
            answer = await operator.get(f"/api/admin/{path}", params={"cursor": tampered})
            assert answer.status_code in {200, 400, 422}, f"{path} {tampered}: {answer.text}"


async def test_a_key_of_another_user_is_not_ones_own(owner: Person, stranger: Person) -> None:
    headers = {"Idempotency-Key": "guessed"}
    body = {"organizationId": owner.organization_id, "name": "A store"}
    made = await owner.browser.post("/api/stores", json=body, headers=headers)
    assert made.status_code == 201
    answer = await stranger.browser.post("/api/stores", json=body, headers=headers)
    assert answer.status_code == 404
    assert made.json()["id"] not in answer.text


@pytest.mark.parametrize(
    "sent",
    [
        b"a b",
        b"a\tb",
        b'x","level":"error","event":"forged',
        b"x" * 129,
        b"",
        b"\xe2\x80\xae",
        b"${jndi:ldap://x}",
        b"<script>",
        b"%0d%0aSet-Cookie:x=1",
    ],
)
async def test_a_request_id_is_a_plain_word_or_a_new_one(live: Running, sent: bytes) -> None:
    async with browsing(live) as client:
        answer = await client.get("/api/stores", headers={b"X-Request-Id": sent})
    given = answer.headers["x-request-id"]
    assert given.encode() != sent
    assert re.fullmatch(r"req_[0-9a-f]+", given)
    assert answer.json()["requestId"] == given
    assert "set-cookie" not in answer.headers


async def test_a_bomb_of_headers_is_refused_before_anyone_reads_it(live: Running) -> None:
    bombs: list[dict[str, str]] = [
        {f"X-Bomb-{n}": "1" for n in range(150)},
        {"X-Bomb": "1" * 20_000},
        {"Cookie": "; ".join(f"session={n:020}" for n in range(800))},
        {"X-Shopify-Hmac-Sha256": "A" * 17_000},
    ]
    async with browsing(live) as client:
        for bomb in bombs:
            for path in ("/api/stores", "/api/webhooks/commerce/events", "/api/health"):
                answer = await client.post(path, headers=bomb)
                assert answer.status_code == 431, path
                assert answer.json()["code"] == "request_header_fields_too_large"


@pytest.mark.changes_schema
async def test_what_fails_inside_says_nothing_of_the_inside(live: Running, seller: Seller) -> None:
    await live.service.database.execute("ALTER TABLE stores RENAME TO hidden")
    answers = [
        await seller.browser.get("/api/stores"),
        await seller.browser.get(f"/api/stores/{seller.store_id}"),
        await seller.connect(),
        await seller.browser.get("/api/nowhere/'; DROP TABLE users; --"),
        await seller.browser.post("/api/stores", content=b"{", headers={"Content-Type": "text/x"}),
    ]
    await live.service.database.execute("ALTER TABLE hidden RENAME TO stores")
    assert answers[0].status_code == 500
    for answer in answers:
        assert answer.headers["content-type"] == "application/problem+json"
        said = answer.json()
        assert {"type", "title", "status", "detail", "code", "requestId"} <= set(said)
        text = answer.text.lower()
        assert not [word for word in (*FORBIDDEN_WORDS, "hidden", "relation") if word in text]


# Limits


@pytest.fixture(params=["with the cache", "without the cache"])
async def limited(
    request: pytest.FixtureRequest,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Running]:
    async with running(settings, timers=False, poll_seconds=0.1) as service:
        if request.param == "without the cache":
            nowhere = Cache(f"unix://{tmp_path / 'redis.sock'}")
            monkeypatch.setattr(service.service.limits, "_cache", nowhere)
        yield service


async def test_five_accounts_a_day_come_from_an_address_whatever_it_says(limited: Running) -> None:
    async def attempt(n: int, address: str) -> int:
        forged = {"X-Forwarded-For": f"198.51.100.{n}", "X-Real-IP": f"198.51.100.{n}"}
        async with browsing(limited, address, **forged) as client:
            body = {"email": f"{n}@example.com", "password": PASSWORD, "organizationName": "x"}
            return (await client.post("/api/auth/signup", json=body)).status_code

    statuses = await asyncio.gather(*(attempt(n, "203.0.113.9") for n in range(12)))
    assert sorted(statuses) == [201] * 5 + [429] * 7
    # an IPv6 client owns its /64
    statuses = [await attempt(20 + n, f"2001:4860::{n + 1:x}") for n in range(6)]
    assert statuses == [201] * 5 + [429]


async def test_twenty_refreshes_an_hour_are_a_users_however_many_sessions(
    limited: Running, platform: Platform
) -> None:
    async with browsing(limited) as client, browsing(limited, "192.0.2.8") as elsewhere:
        ann = await person(client, "ann@example.com")
        login = {"email": ann.email, "password": PASSWORD}
        assert (await elsewhere.post("/api/auth/login", json=login)).status_code == 200
        store = (await ann.store()).json()
        seller = Seller(client, ann.organization_id, store["id"])
        listings = [await listing_of(seller, title=f"No {n}") for n in range(2)]
        assert (await verify(seller, listings[0], SECRET)).status_code == 200
        path = f"{LISTINGS}/{listings[0]['id']}/verify/refresh"
        statuses = await asyncio.gather(*((client, elsewhere)[n % 2].post(path) for n in range(25)))
        assert sorted(answer.status_code for answer in statuses) == [202] * 20 + [429] * 5
        refused = next(answer for answer in statuses if answer.status_code == 429)
        assert int(refused.headers["Retry-After"]) > 3000
        other = await client.post(f"{LISTINGS}/{listings[1]['id']}/verify/refresh")
        assert other.status_code == 429
        await quiet(limited)


# What is missing


async def test_without_its_credential_a_route_names_the_variable_and_all_else_works(
    settings: Settings,
) -> None:
    bare = settings.model_copy(
        update={"cron_secret": None, "vector_url": "http://127.0.0.1:9", "vector_token": None}
    )
    async with running(bare, timers=False) as live, browsing(live) as client:
        ann = await person(client, "ann@example.com")
        store = (await ann.store()).json()
        metrics = await client.get(f"/api/organizations/{ann.organization_id}/memory/metrics")
        cron = await client.post("/api/cron/retention-sweep", headers={"Authorization": "Bearer "})
        kept = await client.delete(f"/api/stores/{store['id']}")
        for answer, name in ((metrics, "VECTOR_TOKEN"), (cron, "CRON_SECRET")):
            assert (answer.status_code, answer.json()["code"]) == (503, "missing_credential")
            assert name in answer.json()["detail"]
        assert kept.status_code == 503
        assert (await client.get(f"/api/stores/{store['id']}")).status_code == 200
        assert (await client.get("/api/health")).status_code == 200


async def test_a_processors_key_is_taken_from_the_owner_only_and_kept_nowhere(
    live: Running, seller: Seller, stranger: Person
) -> None:
    listing = await listing_of(seller)
    path = f"{LISTINGS}/{listing['id']}/verify/payments"
    body = {"restrictedKey": "rk_live_cnry0123456789"}
    assert (await stranger.browser.post(path, json=body)).status_code == 404
    answer = await seller.browser.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (502, "processor_unreachable")
    assert "cnry" not in answer.text
    assert SHOP not in answer.text
