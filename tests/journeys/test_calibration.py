"""Sellers let their verified revenue correct what is estimated of other shops, and how far off that is stands published."""

from datetime import datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from tests.http.people import Clock
from tests.journeys.conftest import Seller
from tests.journeys.strangers import LISTINGS, listing_of
from tests.journeys.test_discovery import ran, states
from tests.journeys.test_scans import DOMAIN, clock, live, scanned, settings, shop, web
from tolsey.sandbox.storefronts import Storefront
from tolsey.service import Running

__all__ = ["clock", "live", "settings", "shop", "web"]

PROVEN = """
INSERT INTO listing_verifications (listing_id, state, generation, shop_domain, primary_domain, keeps_badge, provider,
    since, accepted_at, last_ok_at, verified_at)
VALUES ($1, 'verified', 1, $1 || '.myshopify.com', $2, false, 'commerce', $3, $3, $3, $3)
ON CONFLICT (listing_id, provider) DO UPDATE SET state = 'verified', shop_domain = excluded.shop_domain,
    primary_domain = $2, last_ok_at = $3, verified_at = $3
"""
BOOKS = """
INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain, definition, shop_currency,
    verified, figures, orders, skipped, flags)
VALUES ($1, $2, $2::timestamptz - interval '30 days', 'commerce', $1 || '.myshopify.com', 'rv2', 'USD', true,
    jsonb_build_object('USD', jsonb_build_object('revenue30d', $3::bigint)), 1, '{}', '[]')
"""
OTHER = """
INSERT INTO listings (title, anonymous, included_assets, excluded_assets, self_reported, auto_approve_access,
    financing_offered, id, organization_id, slug, status, created_by, created_at, seller_active_at)
VALUES ('Other', false, '[]', '[]', '{}', false, false, $1, 'org_other', $1, 'DRAFT', 'usr_other', now(), now())
"""
SEEN = """
WITH shop AS (
    INSERT INTO storefronts (domain, state, source, discovered_at, currency, scanned_at, snapshot_at)
    VALUES ($1, 'active', 'test', $2, 'USD', $2::timestamptz + interval '9 days', $2::timestamptz + interval '9 days')
), made AS (
    INSERT INTO storefront_products VALUES ($1, 1, 'A thing', 'a', 'v', 't', $2,
        $2::timestamptz - interval '40 days', $2, NULL)
), variant AS (
    INSERT INTO storefront_variants VALUES ($1, 10, 1, 'S', 'K', 10.00, NULL, true, 500, $2, NULL)
), seen AS (
    INSERT INTO storefront_snapshots
    SELECT $1, $2::timestamptz - n * interval '1 day', $1 || n, 1, 1, 1 FROM generate_series(0, 30) n
)
INSERT INTO storefront_changes (domain, at, variant_id, kind, product_id, before, after)
SELECT $1, $2::timestamptz - n * interval '1 day', 10, 'quantity', 1, '503', '500' FROM generate_series(0, 29) n
"""


async def verified(connection: Any, listing_id: str, domain: str, at: datetime) -> None:
    await connection.execute(PROVEN, listing_id, f"www.{domain}", at)


async def others(connection: Any, at: datetime) -> None:
    """Nine shops that were seen to sell 900 a month, and took half as much again, more or less."""
    for n in range(9):
        listing_id, domain = f"listing_other{n}", f"other{n}.example"
        await connection.execute(OTHER, listing_id)
        await verified(connection, listing_id, domain, at)
        await connection.execute(BOOKS, listing_id, at, 135_000 + 6_750 * (n - 4))
        await connection.execute(SEEN, domain, at)
        await connection.execute(
            "INSERT INTO calibrating_listings VALUES ($1, $2, 'usr_other', $3)",
            *(listing_id, domain, at),
        )


@pytest.fixture
async def connection(live: Running) -> Any:
    opened = await asyncpg.connect(live.service.settings.database_url)
    yield opened
    await opened.close()


async def test_a_seller_ticks_a_box_and_unticks_it(
    seller: Seller, live: Running, connection: Any, clock: Clock
) -> None:
    listing = await listing_of(seller)
    path = f"{LISTINGS}/{listing['id']}/verify/calibration"
    off = {"agreed": False, "agreedAt": None, "domain": None}
    assert (await seller.browser.get(path)).json() == off
    early = await seller.browser.put(path, json={"agreed": True})
    assert (early.status_code, early.json()["code"]) == (409, "not_verified")
    await verified(connection, listing["id"], DOMAIN, clock())

    page = (await seller.browser.get(f"/selling/{listing['id']}")).text
    assert "Use my verified revenue to correct estimates" in page
    assert "checked" not in page
    ticked = await seller.browser.post(
        f"/selling/{listing['id']}/calibration", data={"agreed": "yes"}
    )
    assert ticked.status_code == 303, ticked.text
    agreed = (await seller.browser.get(path)).json()
    assert (agreed["agreed"], agreed["domain"]) == (True, DOMAIN)
    assert await states(live) == {DOMAIN: "discovered"}
    assert "checked" in (await seller.browser.get(f"/selling/{listing['id']}")).text
    assert (await seller.browser.put(path, json={"agreed": False})).json() == off


async def test_estimates_are_corrected_once_ten_shops_take_part(
    operator: httpx.AsyncClient,
    seller: Seller,
    live: Running,
    connection: Any,
    *,
    shop: Storefront,
    clock: Clock,
) -> None:
    await others(connection, clock())
    assert "calibratedBy" not in await ran(live, "intelligence-tick")
    nobody = (await seller.browser.get("/api/public/calibration")).json()
    assert nobody == dict.fromkeys(nobody, None) | {"shops": 0}

    listing = await listing_of(seller)
    await verified(connection, listing["id"], DOMAIN, clock())
    await connection.execute(BOOKS, listing["id"], clock(), 270_000)
    await seller.browser.put(
        f"{LISTINGS}/{listing['id']}/verify/calibration", json={"agreed": True}
    )
    await scanned(operator, persist=True)
    clock.advance(timedelta(days=1))
    shop.products[0]["variants"][0]["inventory_quantity"] = 97
    before = (await scanned(operator, persist=True))["highlights"]["monthly_revenue"]
    assert before["value"] == 1_800  # three a day at 20.00
    assert "not calibrated by" in before["source"]

    outcome = await ran(live, "intelligence-tick")
    assert outcome["calibratedBy"] == 10
    clock.advance(timedelta(hours=1))
    assert "calibratedBy" not in await ran(live, "intelligence-tick")  # once a day
    told = (await seller.browser.get("/api/public/calibration")).json()
    assert (told["factor"], told["shops"]) == (1.5, 10)
    assert 0 < told["medianError"] < 0.3
    after = (await scanned(operator, persist=True))["highlights"]["monthly_revenue"]
    assert after["value"] == 2_700
    assert after["low"] < before["low"] * 1.5
    assert after["high"] > before["high"] * 1.5
    assert "1.5 as 10 verified shops have it" in after["source"]
