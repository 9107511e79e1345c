"""Documented bodies, signed vectors, a real store's products and real purchases, through the door.

They are read where the workplace keeps them beside the project; without them these tests say so.
"""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.golden.cases import BESIDE
from tests.journeys.conftest import EVENTS, PLUS_RATE, SECRET, SHOP, Seller, signed
from tests.timing import until
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import load_purchases
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running
from tolsey.storage.database import Database

DATA = BESIDE / "commerce"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data/commerce here")

BODIES = sorted(DATA.glob("webhooks*/*.json")) + sorted(DATA.glob("compliance/*.json"))
VECTORS = DATA / "signed_vectors.json"


def topic_of(path: Path) -> str:
    return path.stem.replace("__", "/")


async def deliver(
    browser: httpx.AsyncClient, body: bytes, topic: str, **headers: str
) -> httpx.Response:
    return await browser.post(EVENTS, content=body, headers=signed(body, topic, **headers))


@pytest.fixture
async def connected(seller: Seller, platform: Platform, live: Running) -> Seller:
    answer = await seller.connect()
    assert answer.status_code == 200, answer.text
    await settled(live)
    return seller


async def settled(live: Running) -> None:
    await until(lambda: not live.service.runtime.admin.effects_in_flight)


async def everything(database: Database) -> str:
    """Every row of every table as text: what a dump of the database would show."""
    tables = await database.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    parts = []
    for row in tables:
        name = row["table_name"]
        rows = await database.fetch(f"SELECT t::text AS t FROM {name} t")  # noqa: S608 - our own names
        parts += [f"{name}: {found['t']}" for found in rows]
    return "\n".join(parts)


async def test_each_documented_body_is_accepted_once(
    connected: Seller, browser: httpx.AsyncClient, live: Running
) -> None:
    noted = """
        SELECT event FROM audit_log WHERE event LIKE 'commerce.webhook.%' ORDER BY id OFFSET $1"""
    seen = len(await live.service.database.fetch(noted, 0))
    for path in sorted(BODIES, key=ends_the_grant):
        body, topic = path.read_bytes(), topic_of(path)
        delivery = f"{path.parent.name}/{path.stem}"

        first = await deliver(browser, body, topic, delivery_id=delivery)
        again = await deliver(browser, body, topic, delivery_id=delivery)

        assert (first.status_code, first.json()) == (200, {"status": "accepted"}), delivery
        assert (again.status_code, again.json()) == (200, {"status": "duplicate"}), delivery
        rows = await live.service.database.fetch(noted, seen)
        events, seen = {row["event"] for row in rows}, seen + len(rows)
        assert "commerce.webhook.unreadable" not in events, delivery
        if topic in TOPICS:
            assert f"commerce.webhook.{topic.replace('/', '.')}" in events, delivery


def ends_the_grant(path: Path) -> bool:
    return "uninstalled" in path.name


async def test_the_documented_bodies_leave_no_person_behind(
    connected: Seller, browser: httpx.AsyncClient, live: Running
) -> None:
    people: set[str] = set()
    for path in sorted(BODIES, key=ends_the_grant):
        body = path.read_bytes()
        assert (await deliver(browser, body, topic_of(path))).status_code == 200
        people |= {
            match.lower() for match in re.findall(r"[\w.+-]+@[\w-]+\.[\w.-]+", body.decode())
        }
        people |= persons(json.loads(body))
    await settled(live)

    kept = (await everything(live.service.database)).lower()
    assert people
    found = {person for person in people if re.search(rf"\b{re.escape(person)}\b", kept)}
    assert found == set()
    assert "s1:" in kept


def persons(value: Any, found: frozenset[str] = frozenset()) -> set[str]:
    """Names, phones and streets of the buyers in a body."""
    names = {"first_name", "last_name", "phone", "address1", "zip"}
    if isinstance(value, dict):
        own = {
            str(item).lower()
            for key, item in value.items()
            if key in names and isinstance(item, str) and len(item) > 4
        }
        return own.union(*(persons(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(persons(item) for item in value)) if value else set()
    return set(found)


async def test_every_signed_vector_verifies_under_its_secret(
    seller: Seller, platform: Platform, browser: httpx.AsyncClient
) -> None:
    vectors = json.loads(VECTORS.read_text())
    platform.rotate_secret(SHOP, vectors["secret"])
    assert (await seller.connect(secret=vectors["secret"])).status_code == 200
    last = "app/uninstalled"  # it takes the secret away
    for vector in sorted(vectors["vectors"], key=lambda vector: vector["topic"] == last):
        body = (DATA / vector["file"].removeprefix("given/")).read_bytes()
        headers = signed(body, vector["topic"]) | {"X-Shopify-Hmac-Sha256": vector["hmac"]}
        answer = await browser.post(EVENTS, content=body, headers=headers)
        assert answer.status_code == 200, vector["file"]
        spoiled = await browser.post(EVENTS, content=body + b" ", headers=headers)
        assert spoiled.status_code == 401, vector["file"]


async def test_the_products_of_a_real_store_are_kept(
    connected: Seller, browser: httpx.AsyncClient, live: Running
) -> None:
    products = json.loads((DATA / "storefront" / "products.json").read_bytes())["products"]
    for product in products:
        # The public form lists tags; a webhook writes them as one text.
        body = json.dumps({**product, "tags": ", ".join(product["tags"])}).encode()
        answer = await deliver(browser, body, "products/update")
        assert answer.json() == {"status": "accepted"}

    rows = await live.service.database.fetch("SELECT product_id, title FROM commerce_products")
    assert {row["product_id"]: row["title"] for row in rows} == {
        product["id"]: product["title"] for product in products
    }


async def test_real_purchases_are_summed_to_the_cent(
    seller: Seller, platform: Platform, live: Running
) -> None:
    path = DATA / "orders" / "CDNOW_sample.txt"
    now = datetime.now(UTC)
    orders = load_purchases(path, ending=now - timedelta(hours=1))
    shop = "cdnow.myshopify.com"
    platform.add_shop(
        ShopSpec(
            domain=shop,
            client_id="client-1",
            client_secret=SECRET,
            orders=orders,
            restore_rate=PLUS_RATE,
        )
    )
    listing = await seller.post(
        "/api/sell/listings",
        organizationId=seller.organization_id,
        storeId=seller.store_id,
        title="A record shop",
        category="music",
        teaser="Real purchases.",
        askingPrice={"amount": 100_00, "currency": "USD"},
    )
    assert listing.status_code == 201, listing.text
    listing_id = listing.json()["id"]
    verified = await seller.post(
        f"/api/sell/listings/{listing_id}/verify/commerce",
        shopDomain=shop,
        clientId="client-1",
        clientSecret=SECRET,
    )
    assert verified.status_code == 200, verified.text
    with anyio.fail_after(60):
        while True:
            seen = (await seller.browser.get(f"/api/sell/listings/{listing_id}")).json()
            verification = seen["verification"]
            if verification["state"] != "pending":
                break
            await anyio.sleep(0.05)

    assert verification["state"] == "verified"
    start = datetime.fromisoformat(verification["windowStart"])
    end = datetime.fromisoformat(verification["windowEnd"])
    assert verification["revenue30d"] == dollars_in(path, orders, start, end)
    assert verification["annualised"] == 12 * verification["revenue30d"]
    assert verification["currency"] == "USD"


def dollars_in(path: Path, orders: list[Any], start: datetime, end: datetime) -> int:
    """The cents of a window, read from the file itself and only dated by what was loaded."""
    cents: dict[str, list[int]] = defaultdict(list)
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 5:
            cents[words[2]].append(round(float(words[4]) * 100))
    days = sorted(cents)
    shift = (
        max(order.processed_at for order in orders).date()
        - datetime.strptime(days[-1], "%Y%m%d").replace(tzinfo=UTC).date()
    )
    by_day: dict[str, list[datetime]] = defaultdict(list)
    for order in orders:
        day = (order.processed_at.date() - shift).strftime("%Y%m%d")
        by_day[day].append(order.processed_at)
    inside = 0
    for day in days:
        moments = by_day[day]
        assert len(moments) == len(cents[day]), day
        if all(start <= moment < end for moment in moments):
            inside += sum(cents[day])
        else:
            assert not any(start <= moment < end for moment in moments), "a day cut in two"
    return inside


async def test_a_body_of_five_megabytes_is_taken_and_one_above_is_refused(
    connected: Seller, browser: httpx.AsyncClient
) -> None:
    filler = "x" * (5 * 1024 * 1024 - 200)
    body = json.dumps({"id": 1, "updated_at": "2026-07-01T10:00:00Z", "note": filler}).encode()
    assert len(body) < 5 * 1024 * 1024
    answer = await deliver(browser, body, "orders/updated")
    assert answer.json() == {"status": "accepted"}

    above = body + b" " * (5 * 1024 * 1024)
    refused = await deliver(browser, above, "orders/updated")
    assert refused.status_code == 413


HOSTILE = {
    "nul in text": b'{"id": 2, "tags": "a\\u0000b", "updated_at": "2026-07-01T10:00:00Z"}',
    "lone surrogate": b'{"id": 2, "tags": "\\ud800", "updated_at": "2026-07-01T10:00:00Z"}',
    "not utf-8": b'{"id": 2, "tags": "\xff"}',
    "utf-16": '{"id": 2}'.encode("utf-16"),
    "bom": b'\xef\xbb\xbf{"id": 2}',
    "empty": b"",
    "empty object": b"{}",
    "a list": b"[]",
    "a number": b"1",
    "NaN": b'{"id": NaN}',
    "infinite": b'{"id": 1e999}',
    "very long number": b'{"id": ' + b"9" * 5000 + b"}",
    "beyond 64 bits": b'{"id": 18446744073709551616, "updated_at": "2026-07-01T10:00:00Z"}',
    "negative id": b'{"id": -5, "updated_at": "2026-07-01T10:00:00Z"}',
    "text id": b'{"id": "abc", "updated_at": "2026-07-01T10:00:00Z"}',
    "deep": b'{"id":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "money in words": b'{"id": 3, "total_price": "example string", "currency": "USD"}',
    "huge money": b'{"id": 3, "total_price": "1e400", "currency": "USD"}',
    "year 99999": b'{"id": 3, "updated_at": "99999-01-01T00:00:00Z"}',
    "twice the same key": b'{"id": 3, "id": 4, "updated_at": "2026-07-01T10:00:00Z"}',
    "cut off": b'{"id": 3, "tags": ',
}


@pytest.mark.parametrize("topic", ["orders/create", "products/update", "inventory_levels/update"])
async def test_a_hostile_body_is_taken_or_refused_and_never_half_applied(
    connected: Seller, browser: httpx.AsyncClient, live: Running, topic: str
) -> None:
    taken = 0
    for name, body in HOSTILE.items():
        answer = await deliver(browser, body, topic, delivery_id=name.replace(" ", "-"))

        assert answer.status_code in {200, 400}, (name, answer.text)
        taken += answer.status_code == 200
        counted = "SELECT count(*) AS n FROM commerce_webhook_events"
        row = await live.service.database.fetchrow(counted)
        assert row is not None
        assert row["n"] == taken, name
        if answer.status_code == 400:
            assert answer.json()["code"] == "malformed_payload", name
            assert answer.headers["Content-Type"] == "application/problem+json", name
    assert 0 < taken < len(HOSTILE)
