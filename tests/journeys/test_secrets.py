"""Canaries: secrets and persons sent through everything, and looked for everywhere afterwards."""

import base64
import hashlib
import io
import json
import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import redis.asyncio
import structlog

from tests.http.people import KEYRING, PASSWORD
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
PERSON = {
    "email": "Cnry.Buyer+Tag@Example.org",
    "contact_email": "cnry.contact@example.org",
    "phone": "+15550142357",
    "first_name": "Cnryfirstname",
    "last_name": "Cnrylastname",
    "address1": "17 Cnrystreet",
    "browser_ip": "198.51.100.237",
    "tracking_number": "CNRYTRACK0042",
}


def forms(canary: str) -> Iterator[bytes]:
    """Spell a canary every way it may have been written down, in lower case."""
    for text in {canary, canary.lower(), canary.strip().lower()}:
        raw = text.encode()
        yield raw.lower()
        yield raw.hex().encode()
        yield quote(text).lower().encode()
        yield json.dumps(text)[1:-1].lower().encode()
        yield hashlib.sha256(raw).hexdigest().encode()
        for shift in range(3):
            # of what lies at any place of an encoded text, the middle is always spelled like this
            encoded = base64.b64encode(b"\0" * shift + raw)[4:-4]
            if len(encoded) >= 12:
                yield encoded.lower()


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
        spelled = {name: tuple(forms(text)) for name, text in canaries.items()}
        return {
            (where, name)
            for where, said in self.found
            if where.startswith(within)
            for name, spellings in spelled.items()
            if any(spelling in said for spelling in spellings)
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


def personal(body: dict[str, Any]) -> bytes:
    """Put a person into every place where the platform puts one."""
    address = {
        "first_name": PERSON["first_name"],
        "last_name": PERSON["last_name"],
        "name": f"{PERSON['first_name']} {PERSON['last_name']}",
        "address1": PERSON["address1"],
        "phone": PERSON["phone"],
        "email": PERSON["email"],
    }
    everywhere = {
        "email": PERSON["email"],
        "contact_email": PERSON["contact_email"],
        "phone": PERSON["phone"],
        "first_name": PERSON["first_name"],
        "last_name": PERSON["last_name"],
        "browser_ip": PERSON["browser_ip"],
        "client_details": {"browser_ip": PERSON["browser_ip"]},
        "customer": {"id": 7, **address, "default_address": address},
        "billing_address": address,
        "shipping_address": address,
        "addresses": [address],
        "default_address": address,
        "customer_email": PERSON["email"],
        "shop_owner": PERSON["last_name"],
        "destination": address,
        "receipt": {"email": PERSON["email"], "tracking": PERSON["tracking_number"]},
        "tracking_number": PERSON["tracking_number"],
        "tracking_numbers": [PERSON["tracking_number"]],
        "tracking_url": f"https://post.example/{PERSON['tracking_number']}",
        "note": f"for {PERSON['first_name']}",
        "landing_site": f"/?email={quote(PERSON['email'])}",
        "fulfillments": [{"destination": address, "email": PERSON["email"]}],
        "unknown_field": address,
        PERSON["email"]: "as a name",
    }
    return json.dumps({**everywhere, **body}).encode()


AT = "2026-07-01T10:00:00Z"
DELIVERIES: list[tuple[str, dict[str, Any]]] = [
    *(
        (topic, {"id": 1, "currency": "USD", "total_price": "1.00", "updated_at": AT})
        for topic in (
            *("orders/create", "orders/updated", "orders/paid", "orders/cancelled"),
            *("orders/fulfilled", "orders/partially_fulfilled"),
        )
    ),
    ("orders/edited", {"order_edit": {"id": 1, "order_id": 1}}),
    ("orders/delete", {"id": 2}),
    ("refunds/create", {"id": 3, "order_id": 1, "transactions": []}),
    ("fulfillments/create", {"id": 4, "order_id": 1, "status": "success"}),
    ("fulfillments/update", {"id": 4, "order_id": 1, "status": "success"}),
    ("products/create", {"id": 5, "title": "A thing", "variants": []}),
    ("inventory_levels/update", {"inventory_item_id": 6, "location_id": 7, "available": 1}),
    ("customers/create", {"id": 7, "updated_at": AT}),
    ("customers/update", {"id": 7, "updated_at": AT}),
    ("customers/delete", {"id": 8}),
    ("shop/update", {"id": 9, "name": "A shop", "currency": "USD"}),
    ("domains/create", {"id": 10, "host": "shop.example"}),
    ("themes/publish", {"id": 11, "name": "Dawn", "role": "main"}),
    ("bulk_operations/finish", {"admin_graphql_api_id": "gid://shopify/BulkOperation/1"}),
    ("customers/redact", {"shop_id": 9, "shop_domain": SHOP}),
    ("customers/data_request", {"shop_id": 9, "shop_domain": SHOP}),
    ("checkouts/create", {"id": 12}),
    ("orders/create", {"id": "not a number", "currency": PERSON["email"]}),  # unreadable
    ("app/scopes_update", {"id": 13, "current": ["read_orders"]}),
]


async def deliver_everything(browser: httpx.AsyncClient, secret: str) -> None:
    for topic, said in DELIVERIES:
        body = personal(said)
        answer = await browser.post(
            EVENTS, content=body, headers=signed(body, topic, secret=secret)
        )
        assert answer.status_code == 200, f"{topic}: {answer.text}"
    body = personal({"id": 20})
    for sent, headers in (
        (body, signed(body, secret=WRONG_SECRET)),
        (body[:-1], signed(body[:-1], secret=secret)),
        (body, signed(body, topic=PERSON["email"], secret=secret, shop="nobody.myshopify.com")),
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
    body = personal({"id": 77, "currency": "USD", "total_price": "1.00"})
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
        **{f"buyer's {name}": text for name, text in PERSON.items()},
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


def test_the_search_finds_what_is_planted_however_it_is_spelled() -> None:
    email = PERSON["email"]
    planted = [
        email,
        email.upper(),
        quote(email),
        json.dumps({"é": email}),
        email.encode().hex(),
        base64.b64encode(b"xy" + email.encode() + b"z").decode(),
        base64.b64encode(b"x" + email.encode() + b"zz").decode(),
        hashlib.sha256(email.lower().encode()).hexdigest(),
    ]
    for text in planted:
        sinks = Sinks()
        sinks.add("here", f"... {text} ...")
        assert sinks.hits({"e": email}) == {("here", "e")}, text
