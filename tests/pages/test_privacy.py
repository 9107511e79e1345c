"""The pages of privacy duties fit a telephone and a desk, for operators and for merchants."""

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.journeys.conftest import sign_up
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tolsey.storage.people import administrators

KEPT = """
INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys, received_at,
    pending_steps, asked_steps, completed_at, source)
SELECT 'req_' || n, (ARRAY['shop/redact', 'customers/data_request', 'customers/redact'])[1 + n % 3],
    'a-rather-long-name-of-a-shop-' || n || '.myshopify.com', 'd' || n, 'b' || n, ARRAY[$1], ARRAY[$1],
    now() - n * interval '8 days', CASE n % 3 WHEN 0 THEN '{commerce-history,store-record}'::text[] ELSE '{}' END,
    CASE n WHEN 0 THEN '{store-record}'::text[] ELSE '{}' END, CASE n WHEN 4 THEN NULL ELSE now() END,
    (ARRAY['platform', 'shop_app', 'merchant', 'uninstall'])[1 + n % 4]
FROM generate_series(0, 4) n
"""
RECEIPTS = """
INSERT INTO compliance_receipts (request_id, store_id, leg, rows_before, rows_after, at, query_digest)
SELECT q.id, $1, leg, 1200, 0, now(), repeat('0f', 32)
FROM compliance_requests q, unnest(ARRAY['credentials', 'vectors', 'webhook-archive']) AS leg
"""


@pytest.mark.parametrize("width", [1280, 360])
async def test_the_pages_of_privacy_duties_are_readable_and_fit(
    live_site: ServedSite, page: Page, width: int
) -> None:
    database = live_site.running.service.database
    async with httpx.AsyncClient(
        base_url=live_site.url, headers={"Origin": live_site.url}
    ) as browser:
        seller = await sign_up(browser)
    for sql in (KEPT, RECEIPTS):
        await database.execute(sql, seller.store_id)
    await administrators.create_administrator(database, "operator@example.com", PASSWORD)
    privacy = f"/stores/{seller.store_id}/privacy"
    for email, address in (
        ("operator@example.com", "/admin/compliance?shown=all"),
        ("seller@example.com", privacy),
    ):
        await page.open(f"{live_site.url}/login?next={address}", width=width)
        await page.write("#email", email)
        await page.write("#password", PASSWORD)
        await page.click("main button")
        await page.open(live_site.url + address, width=width)
        await page.wait_for("section.sheet")
        await page.read("document.querySelectorAll('details').forEach(one => one.open = true)")
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []
        assert await page.read("document.documentElement.scrollWidth") == width
        assert await page.read(UNNAMED) == []
        await page.call("Network.clearBrowserCookies")
    assert page.problems == []
