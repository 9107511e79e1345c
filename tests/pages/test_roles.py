"""Each role from nothing to done in a browser: by mouse and by the keyboard alone, narrow and wide, with script and without,
in English and in German."""

from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.http.people import PASSWORD
from tests.journeys.conftest import SECRET, SHOP, Seller
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_sellers import verified
from tolsey.storage.people import administrators

WAYS = {
    "mouse, wide, script, English": (False, 1440, True, "en"),
    "mouse, narrow, no script, German": (False, 360, False, "de"),
    "keyboard, wide, no script, German": (True, 1440, False, "de"),
    "keyboard, narrow, script, German": (True, 360, True, "de"),
    "keyboard, narrow, no script, English": (True, 360, False, "en"),
}
"""Each of these with each other one at least once; all at once would be sixteen journeys of each role."""
PRICES = {"en": "190,000", "de": "190.000,00"}
CODES = {"Tab": 9, "Enter": 13, "a": 65}
CONTROL = 2
SENDS = "main form:not(.inline):not([role=search]):not([data-asks]) button:not([type=button])"
"""The button of the form that a page is about."""


@dataclass
class Hands:
    """Somebody at a browser, who has a mouse or a keyboard alone."""

    page: Page
    url: str
    by_keyboard: bool
    width: int
    language: str

    async def open(self, path: str) -> None:
        """Type an address."""
        await self.page.open(self.url + path, width=self.width, height=900)
        await self.fits()

    async def write(self, selector: str, text: str) -> None:
        """Come to a field, and type over what is in it."""
        if not self.by_keyboard:
            await self.page.choose(selector)
            await self.page.write(selector, text)
            return
        await self.tab_to(selector)
        await self.key("a", modifiers=CONTROL, commands=["selectAll"])
        await self.page.call("Input.insertText", text=text)

    async def press(self, selector: str) -> None:
        """Press a link or a button, and see what it leads to."""
        if self.by_keyboard:
            await self.tab_to(selector)
            self.page.loaded.clear()
            await self.key("Enter", text="\r")
            with anyio.fail_after(60):
                await self.page.loaded.wait()
        else:
            await self.page.click(selector)
        await self.fits()

    async def tab_to(self, selector: str) -> None:
        """Walk with the Tab key to the first of what a selector names; what has the focus can be seen."""
        wanted = f"document.querySelector({selector!r})"
        assert await self.page.read(f"Boolean({wanted})"), (selector, await self.page.text("main"))
        for _step in range(150):
            if await self.page.read(f"document.activeElement === {wanted}"):
                shown = "getComputedStyle(document.activeElement).outlineStyle"
                assert await self.page.read(shown) != "none", selector
                return
            await self.key("Tab")
        raise AssertionError(f"the keyboard does not come to {selector}")

    async def key(self, name: str, **more: Any) -> None:
        for kind in ("keyDown", "keyUp"):
            said: dict[str, Any] = {"type": kind, "key": name, "windowsVirtualKeyCode": CODES[name]}
            if kind == "keyDown":
                said |= more
            await self.page.call("Input.dispatchKeyEvent", **said)

    async def fits(self) -> None:
        """See that nothing stands beside the screen, and that all is in the reader's language."""
        assert await self.page.read("document.documentElement.lang") == self.language
        assert await self.page.read("document.documentElement.scrollWidth") == self.width

    async def until(self, selector: str, path: str) -> None:
        """Read a page anew until something is on it."""
        with anyio.fail_after(60):
            while not await self.page.read(f"Boolean(document.querySelector({selector!r}))"):
                await anyio.sleep(0.1)
                await self.open(path)

    async def sign_up(self, email: str, organization: str) -> None:
        await self.open("/signup")
        await self.write("#email", email)
        await self.write("#password", PASSWORD)
        await self.write("#organizationName", organization)
        await self.press(SENDS)

    async def sign_in(self, email: str, path: str) -> None:
        await self.open(f"/login?next={path}")
        await self.write("#email", email)
        await self.write("#password", PASSWORD)
        await self.press(SENDS)


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
async def hands(bazaar: Bazaar, page: Page, request: pytest.FixtureRequest) -> Hands:
    by_keyboard, width, has_script, language = request.param
    await page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
    await page.call("Emulation.setScriptExecutionDisabled", value=not has_script)
    return Hands(page, bazaar.url, by_keyboard, width, language)


async def test_a_merchant_comes_from_an_account_to_a_store_that_works(
    hands: Hands, bazaar: Bazaar
) -> None:
    await hands.sign_up("mara@example.com", "Harrow & Tide")
    await hands.open("/")
    await hands.press("main a[href^='/stores/new']")
    await hands.write("#name", "Ferncroft Kettles")
    await hands.press(SENDS)
    await hands.write("#shopDomain", f"https://{SHOP}/admin")
    await hands.press(SENDS)
    await hands.write("#clientId", "client-1")
    await hands.write("#clientSecret", "shpss_of_another_app")
    await hands.press(SENDS)
    assert await hands.page.read("Boolean(document.querySelector('[role=alert]'))")
    assert await hands.page.read("document.querySelector('#clientId').value") == "client-1"
    assert await hands.page.read("document.querySelector('#clientSecret').value") == ""
    await hands.write("#clientSecret", SECRET)
    await hands.press(SENDS)
    store = (await hands.page.address()).partition("?")[0]
    await hands.until("#well .chip.good", store)
    # What it sells from now on is on the page, with its numbers beside the pictures.
    bazaar.clock.advance(bazaar.platform.now() - bazaar.clock.now)
    bazaar.platform.place_order(SHOP, email="jane@example.com")
    await hands.until("#sales svg rect", store)
    await hands.press("nav.tabs a[href$='/settings']")
    assert await hands.page.read("Boolean(document.querySelector('#agents-address'))")


async def test_a_seller_comes_from_a_store_to_a_listing_that_everyone_sees(
    hands: Hands, bazaar: Bazaar, seller: Seller
) -> None:
    assert (await seller.connect()).status_code == 200
    await hands.sign_in("seller@example.com", f"/stores/{seller.store_id}")
    await hands.press("main a[href^='/selling/new']")
    await hands.write("#title", "Enamel kettles")
    await hands.write("#price", PRICES[hands.language])
    await hands.press(SENDS)
    listing = await hands.page.address()
    await hands.press("form[action$='/prove/store'] button")
    await hands.until(".chip.good", listing)
    await hands.press("form[action$='/publish'] button")
    await hands.press("main a[href^='/listings/']:not([href$='/check'])")
    assert await hands.page.text("h1") == "Enamel kettles"
    asked = {"en": "USD 190,000", "de": "190.000 USD"}
    assert asked[hands.language] in await hands.page.text("main")


async def test_a_buyer_comes_from_an_account_to_a_deal(
    hands: Hands, bazaar: Bazaar, seller: Seller
) -> None:
    await verified(seller)
    await hands.sign_up("ben@example.com", "Saltmarsh")
    await hands.open("/market")
    await hands.press("main table a")
    await hands.write("#message", "We make candles, and look for a shop of kettles.")
    await hands.press("form[action$='/access'] button")
    assert (await hands.page.address()).startswith("/deals/")
    await hands.open("/deals")
    assert await hands.page.read("document.querySelectorAll('main table a').length") == 1


async def test_an_operator_comes_from_a_mail_address_to_what_happened(
    hands: Hands, bazaar: Bazaar, seller: Seller
) -> None:
    database = bazaar.running.service.database
    await administrators.create_administrator(database, "operator@example.com", PASSWORD)
    who = (await seller.browser.get("/api/auth/session")).json()
    seller_id = str(who["user"]["id"])
    await hands.sign_in("operator@example.com", "/admin/find")
    await hands.write("#q", "seller@example.com")
    await hands.press("main form[role=search] button")
    await hands.press("main table a")
    # The address is not shown again; who it belongs to is.
    assert seller_id in await hands.page.text("main")
    await hands.press("nav.sections a[href='/admin/jobs']")
    await hands.press("main a[href$='/run']")
    await hands.write("#reason", "To see it run")
    await hands.press(SENDS)
    (row,) = await database.fetch(
        "SELECT metadata->>'reason' AS reason FROM audit_log WHERE event LIKE 'admin.cron%'"
    )
    assert row["reason"] == "To see it run"
