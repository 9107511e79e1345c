"""An operator has storefronts of other people scanned, and is told what was seen and why the rest was not."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest

from tests.http.people import Clock
from tests.journeys.conftest import sign_up
from tests.timing import until
from tolsey.actors.domains import hash_of
from tolsey.actors.storefront.effects import StorefrontCalls
from tolsey.actors.storefront.messages import (
    AwaitScan,
    DiscoverStorefront,
    RequestScan,
    ScanStorefront,
    SuppressStorefront,
    storefront,
)
from tolsey.actors.storefront.observed import CATEGORIES
from tolsey.http.answers.market.intelligence import ScanReportAnswer
from tolsey.sandbox.providers import IntelligenceProviders
from tolsey.sandbox.storefronts import Storefront, Storefronts, product
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.migrate import MIGRATIONS

SCAN = "/api/admin/intelligence/scan"
DOMAIN = "shop.example"
PENDING = ("0076_storefront_catalogues.sql", "0095_figures_of_snapshots.sql")
CATALOGUE = (
    "storefront_snapshots",
    "storefront_products",
    "storefront_variants",
    "storefront_changes",
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop() -> Storefront:
    listed = [product(n, price="20.00", quantity=100) for n in range(1, 4)]
    return Storefront(domain=DOMAIN, products=listed)


@pytest.fixture
async def web(shop: Storefront) -> AsyncIterator[str]:
    async with Storefronts(shop).serve() as url:
        yield url


@pytest.fixture
def settings(settings: Settings, web: str) -> Settings:
    return settings.model_copy(update={"storefront_url": web, "scan_pace_seconds": 0.0})


@pytest.fixture
async def live(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    async with running(settings, timers=False, poll_seconds=0.1, clock=clock) as service:
        yield service


async def scanned(operator: httpx.AsyncClient, **given: Any) -> dict[str, Any]:
    answer = await operator.post(SCAN, json={"domain": DOMAIN, "mode": "full", **given})
    if answer.status_code == 202:
        where = answer.headers["location"]
        with anyio.fail_after(60):
            while (found := (await operator.get(where)).json()["operation"])["state"] == "running":
                await anyio.sleep(0.05)
        result: dict[str, Any] = found["result"]
        return result
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def count(live: Running, table: str) -> int:
    rows = await live.service.database.fetch(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 - our tables
    return int(rows[0]["n"])


async def test_an_operator_looks_at_a_domain_and_nothing_of_it_is_kept(
    operator: httpx.AsyncClient, live: Running
) -> None:
    told = await scanned(operator, persist=False)
    assert (told["persisted"], told["restoredFromTombstone"]) == (False, False)
    assert set(told["diagnosis"]) == set(CATEGORIES)
    assert told["diagnosis"]["traffic"] == {
        "verdict": "missing_credential",
        "reason": "Set TRAFFIC_API_KEY to read this.",
        "env": "TRAFFIC_API_KEY",
    }
    assert told["config"] == {
        "TRAFFIC_API_KEY": False,
        "SOCIAL_API_KEY": False,
        "ADS_API_KEY": False,
    }
    highlights = told["highlights"]
    assert {"monthly_visits", "monthly_revenue", "best_seller_velocity"} <= set(highlights)
    assert (highlights["product_count"]["value"], highlights["product_count"]["provenance"]) == (
        3,
        "observed",
    )
    assert highlights["monthly_visits"]["value"] is None
    assert highlights["monthly_visits"]["source"] == "Set TRAFFIC_API_KEY to read this."
    for table in ("storefronts", *CATALOGUE):
        assert await count(live, table) == 0


async def test_providers_that_have_a_key_tell_what_a_shop_does_not_show(
    settings: Settings, clock: Clock
) -> None:
    others = IntelligenceProviders(visits={DOMAIN: 48_200})
    async with others.serve() as given:
        keys = {**given, "social_api_key": None, "ads_api_key": "refused"}
        set_up = settings.model_copy(update=keys)
        async with running(set_up, timers=False, poll_seconds=0.1, clock=clock) as service:
            wish = RequestScan(id="scan_1", mode="full", is_kept=True, source="admin", at=clock())
            runtime = service.service.runtime
            await runtime.ask(storefront(DOMAIN), wish)
            with anyio.fail_after(60):
                ended = await runtime.ask(storefront(DOMAIN), AwaitScan(scan_id="scan_1"))
    told = ScanReportAnswer.of(ended, set_up.provider_keys)
    assert (told.persisted, told.config["TRAFFIC_API_KEY"]) == (True, True)
    visits = told.highlights["monthly_visits"]
    assert (visits.value, visits.provenance) == (48_200, "estimated")
    judged = {name: (one.verdict, one.env) for name, one in told.diagnosis.items()}
    assert judged["traffic"] == ("ok", None)
    assert judged["social"] == ("partial", "SOCIAL_API_KEY")
    assert judged["ads"] == ("failed", "ADS_API_KEY")


async def test_only_operators_scan_and_only_domains_of_the_web(
    operator: httpx.AsyncClient, browser: httpx.AsyncClient, shop: Storefront, live: Running
) -> None:
    await sign_up(browser)
    body = {"domain": DOMAIN, "mode": "full", "persist": True}
    assert (await browser.post(SCAN, json=body)).status_code == 403
    for bad in ("127.0.0.1", "localhost", "0x7f.1", "169.254.169.254", "[::1]", "shop"):
        answer = await operator.post(SCAN, json={**body, "domain": bad})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_domain"), bad
    assert shop.asked == []
    assert await count(live, "storefront_scans") == 0


async def test_a_snapshot_writes_what_changed_and_sales_are_told_from_the_stock(
    operator: httpx.AsyncClient, live: Running, shop: Storefront, clock: Clock
) -> None:
    first = await scanned(operator, persist=True)
    assert first["persisted"]
    assert first["diagnosis"]["velocity"]["verdict"] == "empty"
    assert [await count(live, table) for table in CATALOGUE] == [1, 3, 3, 0]

    # Twice within six hours: it is looked at, and no second snapshot is taken.
    clock.advance(timedelta(hours=5))
    shop.products[0]["variants"][0]["inventory_quantity"] = 90
    assert (await scanned(operator, persist=True))["persisted"]
    assert [await count(live, table) for table in CATALOGUE] == [1, 3, 3, 0]

    clock.advance(timedelta(hours=19))
    shop.products[1]["updated_at"] = "2026-02-02T00:00:00Z"  # that alone is no sale
    second = await scanned(operator, persist=True)
    assert [await count(live, table) for table in CATALOGUE] == [2, 3, 3, 1]
    best = second["highlights"]["best_seller_velocity"]
    assert (best["value"], best["provenance"], best["n"]) == (10.0, "observed", 1)
    assert best["low"] < 10 < best["high"]
    revenue = second["highlights"]["monthly_revenue"]
    assert (revenue["value"], revenue["currency"]) == (10 * 20 * 30, "USD")
    assert second["diagnosis"]["velocity"]["verdict"] == "ok"
    rows = await live.service.database.fetch("SELECT kind, before, after FROM storefront_changes")
    assert [tuple(row.values()) for row in rows] == [("quantity", "100", "90")]

    # A product that is no longer listed is gone, and one that is new was not sold before.
    clock.advance(timedelta(hours=6))
    del shop.products[2]
    shop.products.append(product(9, quantity=5))
    await scanned(operator, persist=True)
    rows = await live.service.database.fetch(
        "SELECT kind, variant_id FROM storefront_changes WHERE kind <> 'quantity' ORDER BY kind"
    )
    assert [tuple(row.values()) for row in rows] == [("gone", 30), ("new", 90)]


async def test_a_catalogue_that_never_moved_sells_nothing(
    operator: httpx.AsyncClient, live: Running, clock: Clock
) -> None:
    for _ in range(3):
        told = await scanned(operator, persist=True)
        clock.advance(timedelta(hours=6))
    best = told["highlights"]["best_seller_velocity"]
    assert (best["value"], best["low"], best["n"]) == (0.0, 0.0, 2)
    assert await count(live, "storefront_snapshots") == 3  # the last two by a 304
    assert await count(live, "storefront_changes") == 0


async def test_a_shop_that_shows_no_stock_has_no_velocity_and_says_why(
    operator: httpx.AsyncClient, shop: Storefront, clock: Clock
) -> None:
    shop.products = [product(1)]
    for _ in range(2):
        told = await scanned(operator, persist=True)
        clock.advance(timedelta(hours=6))
        shop.products[0]["updated_at"] = clock().isoformat()
    best = told["highlights"]["best_seller_velocity"]
    assert (best["value"], best["provenance"]) == (None, "unavailable")
    assert "no stock" in best["source"]


async def test_a_domain_that_is_to_be_left_alone_is_forgotten_and_only_a_kept_scan_restores_it(
    operator: httpx.AsyncClient, live: Running, shop: Storefront, clock: Clock
) -> None:
    await scanned(operator, persist=True)
    runtime = live.service.runtime
    suppress = SuppressStorefront(reason="the owner asked", source="owner", at=clock())
    assert await runtime.ask(storefront(DOMAIN), suppress)

    async def is_done() -> bool:
        return not await count(live, "storefronts")

    await until(is_done)
    for table in ("storefront_scans", *CATALOGUE):
        assert await count(live, table) == 0, table
    rows = await live.service.database.fetch("SELECT * FROM intelligence_suppressions")
    assert [row["domain_hash"] for row in rows] == [hash_of(DOMAIN)]
    assert DOMAIN not in str(rows)

    asked = len(shop.asked)
    heard = DiscoverStorefront(source="harvest", at=clock())
    assert not await runtime.ask(storefront(DOMAIN), heard)
    refused = await operator.post(SCAN, json={"domain": DOMAIN, "persist": False})
    assert (refused.status_code, refused.json()["code"]) == (409, "suppressed")
    assert len(shop.asked) == asked

    restored = await scanned(operator, persist=True)
    assert (restored["persisted"], restored["restoredFromTombstone"]) == (True, True)
    again = await scanned(operator, persist=True)
    assert not again["restoredFromTombstone"]
    rows = await live.service.database.fetch(
        "SELECT * FROM intelligence_suppressions WHERE lifted_at IS NULL"
    )
    assert rows == []


@pytest.mark.changes_schema
async def test_a_schema_that_lags_behind_is_healed_and_the_scan_kept(
    live: Running, clock: Clock
) -> None:
    database, healed = live.service.database, list[str]()
    for table in CATALOGUE:
        await database.execute(f"DROP TABLE {table}")
    await database.execute(
        """
        INSERT INTO storefront_scans (id, domain, mode, is_kept, was_restored, source, state, asked_at)
        VALUES ('scan_1', $1, 'full', true, false, 'test', 'running', now())
        """,
        DOMAIN,
    )

    async def heal() -> None:
        """Apply what is pending, as the service does: here the migrations that are missing."""
        for one in PENDING:
            healed.append(one)
            await database.execute((MIGRATIONS / one).read_text())

    calls = StorefrontCalls(live.service.storefronts, database, clock, heal)
    look = ScanStorefront(
        domain=DOMAIN, scan_id="scan_1", is_deep=True, is_kept=True, takes_snapshot=True
    )
    ended = await calls.scan(look)
    assert ended.is_persisted, ended.report
    assert healed == [*PENDING]
    assert await count(live, "storefront_products") == 3


@pytest.mark.changes_schema
async def test_a_scan_that_cannot_be_kept_says_why(
    operator: httpx.AsyncClient, live: Running
) -> None:
    await live.service.database.execute("ALTER TABLE storefront_products DROP COLUMN title")
    told = await scanned(operator, persist=True)
    assert not told["persisted"]
    assert told["diagnosis"]["registry"]["verdict"] == "failed"
    assert "SchemaDrift" in told["diagnosis"]["registry"]["reason"]
    assert told["diagnosis"]["catalogue"]["verdict"] == "ok"


async def test_scans_of_one_domain_at_once_are_one_scan(
    operator: httpx.AsyncClient, shop: Storefront
) -> None:
    body = {"domain": DOMAIN, "mode": "full", "persist": True}
    told = list[str]()

    async def ask() -> None:
        told.append((await scanned(operator, **body))["id"])

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(ask)
    assert len(told) == 4
    # Who asks while one goes on is given that one; who comes later begins another.
    assert shop.paths().count("/") == len(set(told))
