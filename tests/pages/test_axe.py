"""Every page that a role is led to is one that everybody can use (WCAG 2.2 AA), in both languages, light and dark."""

import re
from typing import Final

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.test_walk import Walk, filled
from tests.pages.accessible import violations
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_money import photograph
from tolsey.storage.people import administrators

ID: Final = re.compile(r"[a-z]+_[0-9a-f]{32}|[0-9a-f]{16,}|\d+|%[0-9A-F]{2}")
"""What tells two pages of one template apart."""
NOT_OURS: Final = re.compile(
    r"^/(docs(?!/api(?:[/?]|$))|api|assets|mail)\b|\.(csv|json|xml|rss|pem|zip)\b|/ui\b"
)

CARDS: Final = 704
"""Below this width a row of a table is a card, and nothing is to be scrolled sideways."""
CUT: Final = """[...document.querySelectorAll('main .table')]
  .filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"""


def of_one_kind(pages: dict[str, int]) -> list[str]:
    """Take one page of each template and of each question that it is asked."""
    kinds: dict[str, str] = {}
    for address, status in pages.items():
        if status == httpx.codes.OK and not NOT_OURS.search(address):
            path, _, asked = address.partition("?")
            names = ",".join(sorted(part.partition("=")[0] for part in asked.split("&")))
            kinds.setdefault(f"{ID.sub('*', path)}?{names}", address)
    return list(kinds.values())


async def enter(page: Page, url: str, browser: httpx.AsyncClient) -> None:
    """Be in a tab who somebody is in a browser without pictures."""
    await page.call("Network.clearBrowserCookies")
    for name, value in browser.cookies.items():
        await page.call("Network.setCookie", name=name, value=value, url=url)


async def look(page: Page, url: str, width: int, axe: str) -> list[str]:
    """Open a page, and say what is wrong with it."""
    await page.open(url, width=width)
    if await page.read("document.contentType") != "text/html":
        return []
    wrong: list[str] = []
    shown = await page.read("document.documentElement.scrollWidth")
    if shown > width:
        wrong.append(f"it is {shown} wide")
    if width < CARDS:
        cut = await page.read(CUT)
        wrong += [f"{one} is cut" for one in cut]
    return [*wrong, *await violations(page, axe)]


@pytest.mark.parametrize(
    "reader",
    [("en", 1440), ("de", 360)],
    ids=str,
)
async def test_axe_finds_nothing_on_any_page_of_any_role(
    bazaar: Bazaar, seller: Seller, page: Page, axe: str, reader: tuple[str, int]
) -> None:
    language, width = reader
    database = bazaar.running.service.database
    headers = {"Origin": bazaar.url, "X-Forwarded-For": "192.0.2.7"}
    async with (
        httpx.AsyncClient(base_url=bazaar.url, headers=headers) as other,
        httpx.AsyncClient(base_url=bazaar.url, headers=headers) as operator,
    ):
        buyer = await sign_up(other, "buyer@example.com")
        await administrators.create_administrator(database, "operator@example.com", PASSWORD)
        who = {"email": "operator@example.com", "password": PASSWORD}
        assert (await operator.post("/api/auth/login", json=who)).status_code == 200
        await filled(bazaar.running, seller, buyer)
        await page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
        wrong: dict[str, list[str]] = {}
        seen: set[str] = set()
        roles = {"seller": seller.browser, "buyer": buyer.browser, "operator": operator}
        for role, browser in roles.items():
            await enter(page, bazaar.url, browser)
            for address in of_one_kind((await Walk(browser, language).go()).pages):
                kind = ID.sub("*", address)
                if kind in seen:
                    continue
                seen.add(kind)
                found = await look(page, bazaar.url + address, width, axe)
                if found:
                    wrong[f"{role} {address}"] = found
                name = re.sub(r"\W+", "-", f"{role}-{kind}")[:80]
                await photograph(page, f"axe-{name}-{language}-{width}")
    assert wrong == {}, "\n".join(f"{where}: {what}" for where, what in wrong.items())
    assert len(seen) > 40
