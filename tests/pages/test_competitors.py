"""The pages of competitors, with their pictures, fit a telephone and a desk."""

import os
from pathlib import Path

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.journeys.conftest import sign_up
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED

NAMED = """
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT $1, shop || '.example', 'usr_1', now() FROM unnest(ARRAY['rival', 'a-shop-with-a-rather-long-name', 'quiet']) shop
"""
KNOWN = """
INSERT INTO storefronts (domain, state, source, discovered_at, currency, scanned_at, facts, diagnosis) VALUES
('rival.example', 'active', 'test', now(), 'USD', now(),
    '{"best_seller_velocity": {"value": {"value": 26.4, "low": 21.1, "high": 33.0, "n": 112}, "provenance": "observed",
      "source": "stock in 112 intervals between snapshots"},
      "currency": {"value": "USD", "provenance": "observed", "source": "/meta.json"},
      "median_price": {"value": "64.00", "provenance": "observed", "source": "/products.json"}}',
    '{"traffic": {"verdict": "missing_credential", "reason": "Set TRAFFIC_API_KEY to read this.", "env": null}}'),
('a-shop-with-a-rather-long-name.example', 'active', 'test', now(), 'USD', now(),
    '{"best_seller_velocity": {"value": {"value": null, "low": 9.0, "high": null, "n": 14}, "provenance": "estimated",
      "source": "It counts how often a product went out of stock."}}', '{}')
"""
OVER_TIME = """
WITH made AS (
    INSERT INTO storefront_products VALUES ('rival.example', 1, 'A kettle <of> enamel', 'a', 'v', 't', now(), now(), now(), NULL)
), seen AS (
    INSERT INTO storefront_snapshots
    SELECT 'rival.example', now() - n * interval '1 day', 'scan_' || n, 88, 90, n, 64 + n % 5, 4000 - 60 * (n % 9),
        26 - n % 4, 20 - n % 4, CASE WHEN n < 39 THEN 34 + n % 7 END
    FROM generate_series(0, 39) n
)
INSERT INTO storefront_changes
SELECT 'rival.example', now() - n * interval '1 hour', n, 'price', 1, '48.00', '43.20' FROM generate_series(1, 30) n
"""
OWN = "INSERT INTO store_shops (store_id, shop_domain, facts_at, currency) VALUES ($1, 'own.example', now(), 'USD')"
SHOPS = "domain=rival.example&domain=a-shop-with-a-rather-long-name.example&domain=quiet.example"


@pytest.mark.parametrize("width", [1440, 360])
async def test_the_pages_of_competitors_are_readable_and_fit(
    live_site: ServedSite, page: Page, width: int
) -> None:
    database = live_site.running.service.database
    async with httpx.AsyncClient(
        base_url=live_site.url, headers={"Origin": live_site.url}
    ) as browser:
        seller = await sign_up(browser)
    await database.execute(NAMED, seller.store_id)
    await database.execute(OWN, seller.store_id)
    for sql in (KNOWN, OVER_TIME):
        await database.execute(sql)
    path = f"/stores/{seller.store_id}/competitors"
    await page.open(f"{live_site.url}/login", width=width)
    await page.write("#email", "seller@example.com")
    await page.write("#password", PASSWORD)
    await page.click("main button")
    for name, address in (
        ("all", path),
        ("one", f"{path}/rival.example"),
        ("compare", f"{path}/compare?{SHOPS}"),
    ):
        await page.open(live_site.url + address, width=width)
        await page.wait_for("section.sheet")
        await page.read("document.querySelectorAll('details').forEach(one => one.open = true)")
        if "SHOTS" in os.environ:
            await page.photograph(Path(os.environ["SHOTS"]) / f"{name}-{width}.png", whole=True)
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == [], name
        assert await page.read("document.documentElement.scrollWidth") == width, name
        assert await page.read(UNNAMED) == [], name
    assert page.problems == []
