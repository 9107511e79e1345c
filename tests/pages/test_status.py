"""The status page and its history fit a telephone and a desk, with a part that is down and long words."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tests.pages.test_money import photograph
from tolsey.actors.job.alerts.components import COMPONENTS
from tolsey.actors.job.alerts.effects import update_of
from tolsey.storage.records.status import Incident, MeasuredComponent
from tolsey.storage.status import incidents, measuring

SQUEEZED = """[...document.querySelectorAll('main *')]
  .filter(one => [...one.childNodes].some(part => part.nodeType === 3 && part.textContent.trim().length > 5))
  .filter(one => one.getBoundingClientRect().width < 40)
  .filter(one => {
    const text = document.createRange()
    text.selectNodeContents(one)
    return new Set([...text.getClientRects()].map(line => line.top)).size > 1
  })
  .map(one => one.textContent.trim())"""
"""Texts that stand one letter below the other. A short word is narrow, too, and has one line."""
LONG = "A_rather_long_name_of_a_thing_that_has_no_place_to_break_anywhere_in_it"


async def troubled(site: ServedSite) -> None:
    """Keep a past with bad days, an incident that is open, and one that is over."""
    database, now = site.running.service.database, datetime.now(UTC)
    for days in range(60):
        at = now - timedelta(days=days)
        found = [
            MeasuredComponent(
                component=name,
                state="partial_outage" if days % 11 == place else "operational",
                why="Its work is late." if days % 11 == place else "",
                bad_times=0,
                checked_at=at,
            )
            for place, name in enumerate(COMPONENTS)
        ]
        async with database.transaction() as tx:
            await measuring.note(tx, found)
    for number, (title, state) in enumerate(
        ((LONG, "identified"), ("Scans were late", "resolved"))
    ):
        at = now - timedelta(hours=3 + 50 * number)
        incident = Incident(
            id=f"inc_{number}",
            component="billing",
            title=title,
            impact="major",
            state="investigating",
            source="operator",
            opened_at=at,
            published_at=at,
        )
        async with database.transaction() as tx:
            await incidents.open_incident(tx, incident)
            await incidents.say(tx, update_of(incident, "investigating", f"{LONG} {LONG}.", at))
        async with database.transaction() as tx:
            said = update_of(incident, state, "We found it.", at + timedelta(hours=1))  # type: ignore[arg-type]  # one of its words
            await incidents.say(tx, said)


@pytest.mark.parametrize("width", [1440, 360])
async def test_the_status_page_and_its_history_are_readable_and_fit(
    live_site: ServedSite, page: Page, width: int
) -> None:
    await troubled(live_site)
    for name, address in (("status", "/status"), ("history", "/status/history")):
        await page.open(live_site.url + address, width=width)
        await page.wait_for("section.sheet")
        await photograph(page, f"{name}-{width}")
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == [], name
        assert await page.read("document.documentElement.scrollWidth") == width, name
        assert await page.read(UNNAMED) == [], name
        assert await page.read(SQUEEZED) == [], name
    # Whoever has no account is told that a mail comes, and nothing else of the page changes.
    await page.open(f"{live_site.url}/status", width=width)
    await page.write("#email", "reader@example.com")
    await page.click("form[action='/status/subscribe'] button")
    assert "We wrote to that address." in await page.read("document.body.innerText")
    assert page.problems == []
