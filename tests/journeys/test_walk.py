"""Every link and every form that only asks leads each role to a page of theirs, in both languages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urljoin, urlsplit

import httpx
import pytest

from tests.journeys.conftest import Seller, sign_up
from tests.journeys.strangers import LISTINGS, browsing
from tests.journeys.test_console import DEAD
from tests.journeys.test_home import LAUNCH, OWED, PROPOSED, UNPAID
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.service import Running

MOST: Final = 400
"""Pages that a role is led to at most; more would be the same ones with other questions."""
HERE = "http://tolsey.test"
REFERENCE: Final = re.compile(r"/docs/api/(?!chat\b)")
"""Pages of the API's reference but for one group's: `tests/http/test_reference.py` reads them all."""
AMOUNT = {"amount": 2_000_000, "currency": "USD"}


class Ways(HTMLParser):
    """The links of a page, and its forms that are sent with GET as they stand."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._action: str | None = None
        self._sent: dict[str, str] = {}
        self._select = ""
        self._is_whole = True
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in one:
            self.found.append(one["href"])
        elif tag == "form":
            asks = one.get("method", "get").lower() == "get"
            self._action, self._sent = (one.get("action", "") if asks else None), {}
            self._is_whole = True
        elif tag == "select":
            self._select = one.get("name", "")
        elif (
            tag == "option"
            and self._select
            and ("selected" in one or self._select not in self._sent)
        ):
            self._sent[self._select] = one.get("value", "")
        elif tag == "input" and "name" in one and one.get("type") not in {"checkbox", "radio"}:
            self._sent[one["name"]] = one.get("value", "")
            # A browser does not send what is wanted and empty.
            self._is_whole &= "required" not in one or bool(one.get("value"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        if tag == "form" and self._action is not None and self._is_whole:
            self.found.append(f"{self._action}?{urlencode(self._sent)}")
            self._action = None


@dataclass
class Walk:
    """What somebody finds who follows every way from the home page."""

    browser: httpx.AsyncClient
    language: str
    pages: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    async def go(self) -> "Walk":
        waiting = [("/", "the address")]
        known = {"/"}
        while waiting and len(self.pages) < MOST:
            address, source = waiting.pop(0)
            answer = await self.browser.get(
                address,
                headers={"Accept": "text/html", "Accept-Language": self.language},
            )
            self.pages[address] = answer.status_code
            if answer.status_code in {301, 302, 303}:
                ways = [answer.headers["location"]]
            elif answer.status_code != 200:
                self.broken.append(f"{answer.status_code} {address} from {source}")
                continue
            elif not answer.headers["content-type"].startswith("text/html"):
                continue
            else:
                if 'class="skip"' in answer.text and f'lang="{self.language}"' not in answer.text:
                    self.broken.append(f"{address} from {source} is in another language")
                ways = Ways(answer.text).found
            for way in ways:
                to = urlsplit(urljoin(f"{HERE}{address}", way))
                asked = f"{to.path}?{to.query}".rstrip("?")
                is_ours = f"{to.scheme}://{to.netloc}" == HERE and not REFERENCE.match(asked)
                if is_ours and asked not in known:
                    known.add(asked)
                    waiting.append((asked, address))
        return self


async def filled(live: Running, seller: Seller, buyer: Seller) -> None:
    """Have something of each kind: a shop, a badge, a deal, a launch, requests, proposals, what failed."""
    database = live.service.database
    assert (await seller.connect()).status_code in {200, 201}
    made = await seller.post(
        LISTINGS,
        organizationId=seller.organization_id,
        storeId=seller.store_id,
        title="Corner Ceramics",
        askingPrice=AMOUNT,
    )
    assert made.status_code == 201, made.text
    listing = made.json()["id"]
    assert (await seller.post(f"{LISTINGS}/{listing}/publish")).status_code == 200
    asked = await buyer.post(
        f"/api/marketplace/listings/{listing}/access",
        organizationId=buyer.organization_id,
        message="Tell me more.",
    )
    assert asked.status_code == 201, asked.text
    deal = asked.json()
    let_in = await seller.post(
        f"/api/marketplace/deals/{deal['id']}/advance",
        event="access.approve",
        expectedStage=deal["stage"],
    )
    assert let_in.status_code == 200, let_in.text
    owned: Mapping[str, tuple[object, ...]] = {
        LAUNCH: (seller.store_id, seller.organization_id, list(PLAYBOOK.milestones)),
        OWED: (seller.store_id,),
        PROPOSED: (seller.store_id,),
        UNPAID: (seller.organization_id,),
        DEAD: (seller.store_id,),
    }
    for sql, given in owned.items():
        await database.execute(sql, *given)
    named = await seller.post(
        f"/api/stores/{seller.store_id}/competitors", domain="rival.example.com"
    )
    assert named.status_code in {200, 201, 202}, named.text


@pytest.mark.parametrize("language", ["en", "de"])
async def test_every_way_leads_each_role_to_a_page_of_theirs(
    live: Running, seller: Seller, operator: httpx.AsyncClient, language: str
) -> None:
    async with browsing(live, address="192.0.2.7") as elsewhere, browsing(live, "192.0.2.8") as new:
        buyer = await sign_up(elsewhere, "buyer@example.com")
        newcomer = await sign_up(new, "merchant@example.com")
        await filled(live, seller, buyer)
        roles = {
            "seller": seller.browser,
            "buyer": buyer.browser,
            "merchant": newcomer.browser,
            "operator": operator,
        }
        broken: dict[str, list[str]] = {}
        for role, browser in roles.items():
            walk = await Walk(browser, language).go()
            assert len(walk.pages) > 20, (role, walk.pages)
            if walk.broken:
                broken[role] = walk.broken
        assert broken == {}
