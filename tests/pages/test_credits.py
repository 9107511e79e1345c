"""What the billing page says of credits: what was granted, and what moved the balance."""

import html
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_billing import signed_up
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    GrantCredits,
    HoldCredits,
    ReleaseHold,
    SpendCredits,
)
from tolsey.actors.organization.messages import organization
from tolsey.http.billing.pages import SHOWN_ENTRIES
from tolsey.runtime.messages import Message

DOLLAR = 1_000_000
YEAR = timedelta(days=365)
# Whatever is wider than the box it stands in: it would be cut off, or be scrolled to.
CUT = """[...document.querySelectorAll('main .table, main .table *')]
  .filter(one => one.scrollWidth > one.clientWidth && getComputedStyle(one).display !== 'inline')
  .map(one => one.outerHTML)"""


async def told(live_site: ServedSite, id: str, *messages: Message[Any]) -> None:
    for message in messages:
        await live_site.running.service.runtime.ask(organization(id), message)


def gift(dollars: int, at: datetime) -> AdjustCredits:
    return AdjustCredits(
        key=f"adjustment_{dollars}",
        amount=dollars * DOLLAR,
        reason="a gift",
        user_id="usr_1",
        at=at,
    )


async def test_what_moved_the_balance_is_found_behind_what_did_not(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    id, at = await signed_up(visitor), live_site.clock()
    shown = await visitor.get(f"/billing?organizationId={id}")
    assert "Nothing has changed your balance yet." in shown.text
    await told(live_site, id, gift(50, at), gift(70, at))
    for n in range(SHOWN_ENTRIES):
        hold = f"chat:gen_{n}"
        await told(
            live_site,
            id,
            HoldCredits(hold_id=hold, amount=1, at=at, lease_until=at + YEAR),
            ReleaseHold(hold, at),
        )

    shown = await visitor.get(f"/billing?organizationId={id}")
    rows = shown.text.split("<h2>Activity</h2>")[1].split("<tbody>")[1]
    assert rows.count("<tr>") == 2
    assert rows.index("+$70.00") < rows.index("+$50.00")


async def test_many_grants_stand_on_pages_that_lead_to_one_another(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    id, at = await signed_up(visitor), live_site.clock()
    many = [
        GrantCredits(
            key=f"g{n}",
            kind="bonus",
            amount=(1_000 + n) * DOLLAR,
            at=at,
            expires_at=at + YEAR - timedelta(days=n),
        )
        for n in range(110)
    ]
    await told(live_site, id, *many)
    shown = (await visitor.get(f"/billing?organizationId={id}")).text
    assert "100 of 110 grants." in shown
    assert "$1,109.00 of $1,109.00" in shown
    assert "$1,009.00 of" not in shown
    link = html.unescape(shown.split('">Next grants</a>')[0].rsplit('href="', 1)[1])
    rest = (await visitor.get(link)).text
    assert "$1,009.00 of $1,009.00" in rest
    assert "10 of 110 grants." in rest
    assert "Next grants" not in rest
    assert "$1,109.00 on" in rest  # what expires next of all


@pytest.mark.parametrize("width", [320, 390, 1280])
async def test_nothing_of_the_tables_is_cut_off(
    live_site: ServedSite, page: Page, width: int
) -> None:
    await page.open(f"{live_site.url}/signup")
    for name, value in (("email", "ann@example.com"), ("password", PASSWORD)):
        await page.write(f"#{name}", value)
    await page.write("#organizationName", "Ann's")
    await page.click("main button")
    await page.open(f"{live_site.url}/billing")
    address = await page.address()
    id, at = address.split("=")[1], live_site.clock()
    grants = [
        GrantCredits(key=kind, kind=kind, amount=5_000 * DOLLAR, at=at, expires_at=at + 2 * YEAR)
        for kind in ("allowance", "purchase", "bonus")
    ]
    await told(
        live_site,
        id,
        gift(4_000, at),
        *grants,
        SpendCredits(key="s", amount=1_234_567_891, reason="chat", at=at),
    )
    await page.open(live_site.url + address, width=width)

    text = await page.text("main")
    for said in ("$2,765.432109", "of $5,000.00", "-$1,234.567891", "Adjustment"):
        assert said in text
    assert await page.read(CUT) == []
    assert await page.read("document.documentElement.scrollWidth") == width
