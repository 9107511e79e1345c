"""The operators' console fits a telephone and a desk."""

import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tests.pages.test_money import photograph
from tolsey.http.operators.console.sections import SECTIONS
from tolsey.storage.people import administrators

DEAD = """
INSERT INTO dead_letters (id, key, kind, actor_key, name, payload, attempts, error, status, slot, created_at, died_at)
SELECT 'dead_' || n, 'key_' || n, 'store', 'store_0190f0c4a7c07b8f9d52d7e1f0a1b2c3', 'store.Sleep', '{}', 5,
    'KeyError: ''a_rather_long_name_of_a_field_that_has_no_place_to_break_' || n || '''', 'dead', 1, now(), now()
FROM generate_series(1, 3) n
"""


@pytest.mark.parametrize("width", [1440, 360])
async def test_the_console_is_readable_and_fits(
    live_site: ServedSite, page: Page, width: int
) -> None:
    database = live_site.running.service.database
    await database.execute(DEAD)
    await administrators.create_administrator(database, "operator@example.com", PASSWORD)
    await page.open(f"{live_site.url}/login?next=/admin/find", width=width)
    await page.write("#email", "operator@example.com")
    await page.write("#password", PASSWORD)
    await page.click("main button")
    for address in (
        *SECTIONS,
        "/admin/actors/job/retention-sweep",
        "/admin/dead-letters/dead_1/discard",
        "/admin/shards/move",
        "/admin/incidents/open",
    ):
        await page.open(live_site.url + address, width=width)
        await page.wait_for("nav.sections")
        await photograph(page, f"console-{address.strip('/').replace('/', '-')}-{width}")
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == [], address
        assert await page.read("document.documentElement.scrollWidth") == width, address
        assert await page.read(UNNAMED) == [], address
    assert page.problems == []
