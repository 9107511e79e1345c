"""Canaries: secrets and persons sent through everything, and looked for everywhere afterwards."""

import io
import json
import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest
import redis.asyncio
import structlog

from tests.http.people import KEYRING, PASSWORD
from tests.journeys.canary.spelling import CANARY, DELIVERIES, found_in, personal
from tests.journeys.conftest import CRON_SECRET, EVENTS, SHOP, Seller, signed
from tests.journeys.strangers import LISTINGS, PUBLIC, browsing, listing_of, quiet
from tolsey import logs
from tolsey.sandbox.commerce.course.faults import Fault
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.people import administrators

METRICS_TOKEN = "cnrymetrics0123456789abcdef"
STORE_SECRET = "cnrystoresecret5f3a9b71c2d4e6f8"
"""Looks like no secret, so that no pattern can save it in a log."""
LISTING_SECRET = "cnrylistingsecret8f6e4d2c1b9a7f5"
WRONG_SECRET = "cnrywrongsecret1a2b3c4d5e6f7081"
ROTATED = "cnryrotatedsecret99aa88bb77cc66"
RESTRICTED_KEY = "cnryrestrictedkey44dd33ee22ff11"
LOGIN_PASSWORD = "cnry password nobody guesses"
WRONG_PASSWORD = "cnry password of someone else"


class Sinks:
    """Everything the service wrote anywhere, by where it was found."""

    def __init__(self) -> None:
        self.found: list[tuple[str, bytes]] = []
        self.lines = io.StringIO()
        """The log as an operator reads it."""

    def add(self, where: str, said: Any) -> None:
        raw = said if isinstance(said, bytes) else str(said).encode("utf-8", "replace")
        self.found.append((where, raw.lower()))

    def hits(self, canaries: Mapping[str, str], *, within: str = "") -> set[tuple[str, str]]:
        return {
            (where, name)
            for where, said in self.found
            if where.startswith(within)
            for name, canary in canaries.items()
            if found_in(said, canary)
        }


@pytest.fixture
def sinks(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Sinks]:
    """Log as the service does, and note each event before it is masked as well."""
    made = Sinks()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", made.lines)  # no terminal, so JSON
        logs.configure("debug")
    processors = list(structlog.get_config()["processors"])

    def note(_: Any, __: str, event: Any) -> Any:
        made.add("raw log", dict(event))
        return event

    processors.insert(processors.index(logs.mask), note)
    structlog.configure(
        processors=processors, logger_factory=structlog.PrintLoggerFactory(made.lines)
    )
    caplog.set_level(logging.DEBUG)
    yield made
    structlog.reset_defaults()


@pytest.fixture
async def watched(settings: Settings, sinks: Sinks) -> AsyncIterator[Running]:
    given = settings.model_copy(update={"metrics_token": METRICS_TOKEN})
    async with running(given, timers=False, poll_seconds=0.1) as service:
        yield service


@pytest.fixture
async def surfer(watched: Running, sinks: Sinks) -> AsyncIterator[httpx.AsyncClient]:
    """A browser whose every answer is kept."""

    async def note(answer: httpx.Response) -> None:
        where = f"answer {answer.request.method} {answer.request.url.path}"
        sinks.add(where, await answer.aread())
        sinks.add(where, [pair for pair in answer.headers.raw if pair[0].lower() != b"set-cookie"])

    async with browsing(watched) as client:
        client.event_hooks["response"] = [note]
        yield client


async def deliver_everything(browser: httpx.AsyncClient, secret: str) -> None:
    for topic, said in DELIVERIES:
        body = personal(CANARY, said)
        answer = await browser.post(
            EVENTS, content=body, headers=signed(body, topic, secret=secret)
        )
        assert answer.status_code == 200, f"{topic}: {answer.text}"
    body = personal(CANARY, {"id": 20})
    for sent, headers in (
        (body, signed(body, secret=WRONG_SECRET)),
        (body[:-1], signed(body[:-1], secret=secret)),
        (body, signed(body, topic=CANARY["email"], secret=secret, shop="nobody.myshopify.com")),
    ):
        assert (await browser.post(EVENTS, content=sent, headers=headers)).status_code in {400, 401}


async def misbehave(seller: Seller, platform: Platform) -> None:
    """Go through what can go wrong with credentials."""
    assert (await seller.connect(secret=WRONG_SECRET)).status_code == 422
    echo = {"error": WRONG_SECRET, "error_description": f"no app has the secret {WRONG_SECRET}"}
    for answer_body in (
        json.dumps(echo),
        f"Oauth error invalid_request: {WRONG_SECRET}",
        f"<p>{echo}</p>",
    ):
        fault = Fault("answer", status=400, body=answer_body.encode())
        platform.faults.waiting.setdefault("token", deque()).append(fault)
        assert (await seller.connect(secret=WRONG_SECRET)).status_code == 422
    platform.faults.status(500, times=3, on="token")
    assert (await seller.connect(secret=WRONG_SECRET)).status_code == 502
    platform.faults.garbage(times=3, on="token")
    assert (await seller.connect(secret=WRONG_SECRET)).status_code == 502
    platform.faults.clear()
    misshapen: tuple[dict[str, Any], ...] = (
        {"clientSecret": WRONG_SECRET},
        {"storeId": 1, "shopDomain": SHOP, "clientId": "c", "clientSecret": [WRONG_SECRET]},
        {
            "storeId": seller.store_id,
            "shopDomain": WRONG_SECRET,
            "clientId": "c",
            "clientSecret": "x",
        },
        {
            "storeId": seller.store_id,
            "shopDomain": SHOP,
            "clientId": "c",
            "clientSecret": "é" + WRONG_SECRET,
        },
    )
    for given in misshapen:
        answer = await seller.browser.post("/api/integrations/commerce/custom-app", json=given)
        assert answer.status_code == 422


async def journey(live: Running, browser: httpx.AsyncClient, platform: Platform) -> Seller:
    """Do all a seller does, rightly and wrongly."""
    body = {"email": "seller@example.com", "password": LOGIN_PASSWORD, "organizationName": "A"}
    made = await browser.post("/api/auth/signup", json=body)
    store = {"organizationId": made.json()["organization"]["id"], "name": "A store"}
    store_id = (await browser.post("/api/stores", json=store)).json()["id"]
    seller = Seller(browser, store["organizationId"], store_id)
    for password, status in ((WRONG_PASSWORD, 401), (LOGIN_PASSWORD, 200)):
        login = {"email": "seller@example.com", "password": password}
        assert (await browser.post("/api/auth/login", json=login)).status_code == status
    short = {"email": "x", "password": "cnry", "organizationName": "A"}
    assert (await browser.post("/api/auth/signup", json=short)).status_code == 422

    await misbehave(seller, platform)
    platform.rotate_secret(SHOP, STORE_SECRET)
    assert (await seller.connect(secret=STORE_SECRET)).status_code == 200
    await quiet(live)
    await deliver_everything(browser, STORE_SECRET)
    await quiet(live)

    platform.rotate_secret(SHOP, LISTING_SECRET, keep_old=True)
    listing = await listing_of(seller, askingPrice={"amount": 10**9, "currency": "USD"})
    path = f"{LISTINGS}/{listing['id']}"
    credentials = {"shopDomain": SHOP, "clientId": "client-1", "clientSecret": LISTING_SECRET}
    assert (await seller.post(f"{path}/verify/commerce", **credentials)).status_code == 200
    key = {"restrictedKey": RESTRICTED_KEY}
    assert (await browser.post(f"{path}/verify/payments", json=key)).status_code == 422
    await seller.post(f"{path}/publish")
    await quiet(live)
    for tail in ("", "/verification", "/badge.svg", "/embed", "/history"):
        assert (await browser.get(f"{PUBLIC}/{listing['slug']}{tail}")).status_code == 200
    platform.rotate_secret(SHOP, ROTATED)
    platform.revoke_tokens(SHOP)
    await browser.post(f"{path}/verify/refresh")
    await quiet(live)
    assert (await browser.get(path)).json()["verification"]["state"] == "token_unavailable"
    for tail in ("integrations/commerce", "export"):
        assert (await browser.get(f"/api/stores/{store_id}/{tail}")).status_code == 200
    return seller


async def break_inside(live: Running, browser: httpx.AsyncClient, seller: Seller) -> None:
    """Let the database fail in the middle of a connect, a delivery and a login."""
    database = live.service.database
    await database.execute("ALTER TABLE users RENAME TO hidden")
    login = {"email": "seller@example.com", "password": WRONG_PASSWORD}
    assert (await browser.post("/api/auth/login", json=login)).status_code == 500
    await database.execute("ALTER TABLE hidden RENAME TO users")
    await database.execute("ALTER TABLE commerce_orders ADD CONSTRAINT no CHECK (order_id <> 77)")
    body = personal(CANARY, {"id": 77, "currency": "USD", "total_price": "1.00"})
    headers = signed(body, secret=STORE_SECRET)
    answer = await browser.post(EVENTS, content=body, headers=headers)
    assert answer.status_code in {200, 500, 503}


async def look_everywhere(
    live: Running, operator: httpx.AsyncClient, seller: Seller, sinks: Sinks
) -> None:
    """Read all that can be read."""
    paths = ["actors", "dead-letters", "crons", "audit", "webhooks"]
    listed = await operator.get("/api/admin/actors?limit=200")
    paths += [f"actors/{row['kind']}/{row['id']}" for row in listed.json()["items"]]
    assert f"actors/store/{seller.store_id}" in paths
    for path in paths:
        assert (await operator.get(f"/api/admin/{path}")).status_code == 200, path
    scraping = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    assert (await operator.get("/metrics", headers=scraping)).status_code == 200
    for path in ("/openapi.json", "/api/health", "/.well-known/verification-keys.json"):
        assert (await operator.get(path)).status_code == 200, path
    database = live.service.database
    names = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for name in [row["tablename"] for row in names]:
        for row in await database.fetch(f'SELECT t::text AS said FROM "{name}" t'):  # noqa: S608 - names of our own tables
            sinks.add(f"table {name}", row["said"])
    assert live.service.settings.redis_url is not None
    client = redis.asyncio.from_url(live.service.settings.redis_url)
    for key in await client.keys("*"):
        sinks.add("redis", key)
        sinks.add("redis", await client.dump(key))
    await client.aclose()


@pytest.mark.changes_schema
async def test_no_secret_and_no_buyer_is_found_anywhere_after_a_whole_journey(
    watched: Running,
    surfer: httpx.AsyncClient,
    platform: Platform,
    sinks: Sinks,
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator_login = {"email": "operator@example.com", "password": PASSWORD}
    await administrators.create_administrator(watched.service.database, *operator_login.values())
    seller = await journey(watched, surfer, platform)
    tokens = {text for shop in platform.shops.values() for text in shop.tokens}
    await break_inside(watched, surfer, seller)
    sessions = {str(cookie.value) for cookie in surfer.cookies.jar}
    async with browsing(watched) as operator:
        operator.event_hooks["response"] = surfer.event_hooks["response"]
        assert (await operator.post("/api/auth/login", json=operator_login)).status_code == 200
        await look_everywhere(watched, operator, seller, sinks)
        sessions |= {str(cookie.value) for cookie in operator.cookies.jar}
    sinks.add("log", caplog.text)
    lines = sinks.lines.getvalue()
    events = {json.loads(line)["event"] for line in lines.splitlines()}
    assert {"refresh_rejected", "request.storage_failed", "commerce.webhook.unreadable"} <= events
    sinks.add("log", lines)

    canaries = {
        "client secret": STORE_SECRET,
        "client secret of the listing": LISTING_SECRET,
        "refused secret": WRONG_SECRET,
        "restricted key": RESTRICTED_KEY,
        "password": LOGIN_PASSWORD,
        "wrong password": WRONG_PASSWORD,
        "cron secret": CRON_SECRET,
        "metrics token": METRICS_TOKEN,
        "keyring": KEYRING,
        **{f"session {n}": text for n, text in enumerate(sorted(sessions))},
        **{f"token {n}": text for n, text in enumerate(sorted(tokens))},
        **{f"buyer's {name}": text for name, text in CANARY.items()},
    }
    assert len(sessions) == 2
    assert len(sinks.found) > 300
    digests = {"table sessions"}  # a session is kept as the digest of its token
    hits = {(where, name) for where, name in sinks.hits(canaries) if where not in digests}
    assert not hits, sorted(hits)
    # the account's own address is the account's: not in any line of a log, masked or not
    assert not sinks.hits({"account": "seller@example.com"}, within="log")
    assert not sinks.hits({"account": "seller@example.com"}, within="raw log")
    assert not sinks.hits({"account": "seller@example.com"}, within="redis")
