"""A business is sold in two browsers: found, let in, signed for, offered for, handed over and closed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Browser, Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tests.pages.test_money import photograph
from tolsey.storage.people import administrators

WIDTHS = (1440, 360)
TWICE_NAMED = """[...document.querySelectorAll('[id]')].map(one => one.id)
  .filter((id, at, all) => all.indexOf(id) !== at)"""
STAGE = "main .head .chip"


@dataclass
class Reader:
    """Somebody with a tab of their own."""

    site: ServedSite
    page: Page
    name: str

    async def see(self, path: str, width: int = 1440) -> str:
        await self.page.open(self.site.url + path, width=width)
        return await self.page.text("main")

    async def press(self, button: str) -> str:
        """Click on what is called so, and read what comes."""
        found = await self.page.read(
            "(name => { const one = [...document.querySelectorAll('main a, main button')]"
            ".find(one => one.innerText.trim() === name || one.getAttribute('aria-label') === name);"
            "document.querySelectorAll('[data-here]').forEach(one => delete one.dataset.here);"
            f"if (one) one.dataset.here = ''; return Boolean(one) }})({button!r})"
        )
        assert found, f"{button} is not among: {await self.page.text('main')}"
        await self.page.click("[data-here]")
        return await self.page.text("main")

    async def move(self, deal: str, button: str, **typed: str) -> str:
        """Make a move on the page of a deal: its page says what happens, and asks for what it needs."""
        await self.see(deal)
        await self.press(f"{button}…")
        for field, text in typed.items():
            await self.page.write(f"#{field}", text)
        said = await self.press(button)
        assert "The other party is written to." in said, said
        return said

    async def sign(self, deal: str, paper: str) -> None:
        await self.see(deal)
        await self.press(paper)
        await self.page.write("#typedName", self.name)
        await self.page.choose("[name=consent]")
        assert "Your signature is kept" in await self.press(f"Sign: {paper}")

    async def look(self, name: str) -> None:
        """See that the page can be read, named and held in a hand; what is folded, opened."""
        opened = "document.querySelectorAll('details').forEach(one => { one.open = true })"
        await self.page.read(opened)
        for width in WIDTHS:
            await self.page.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=800,
                deviceScaleFactor=1,
                mobile=False,
            )
            await photograph(self.page, f"deal-{name}-{width}")
            texts = await self.page.read(TEXTS)
            assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == [], name
            assert await self.page.read("document.documentElement.scrollWidth") == width, name
            assert await self.page.read(UNNAMED) == [], name
            assert await self.page.read(TWICE_NAMED) == [], name

    async def tab_to(self, wanted: str) -> None:
        """Walk with the Tab key to what a selector names, as whoever has no mouse does."""
        for _step in range(80):
            if await self.page.read(f"document.activeElement.matches({wanted!r})"):
                return
            await self.key("Tab")
        raise AssertionError(f"the keyboard does not come to {wanted}")

    async def leave_the_mouse(self) -> None:
        """Point at nothing: what somebody points at is not renewed under them."""
        await self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)

    async def key(self, name: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13, " ": 32}[name]
        for kind in ("keyDown", "keyUp"):
            said: dict[str, Any] = {"type": kind, "key": name, "windowsVirtualKeyCode": code}
            if text and kind == "keyDown":
                said["text"] = text
            await self.page.call("Input.dispatchKeyEvent", **said)

    async def go(self) -> None:
        """Press Enter on a link or button, and wait for what it leads to."""
        self.page.loaded.clear()
        await self.key("Enter", "\r")
        await self.page.loaded.wait()


async def arrive(site: ServedSite, page: Page, name: str) -> Reader:
    """Sign up without a picture, and sign in with one."""
    email = f"{name.lower()}@example.com"
    async with httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}) as client:
        body = {"email": email, "password": PASSWORD, "organizationName": f"{name} & Co"}
        made = await client.post("/api/auth/signup", json=body)
        assert made.status_code == 201, made.text
    reader = Reader(site, page, name)
    await enter(reader, email)
    return reader


async def enter(reader: Reader, email: str) -> None:
    await reader.see("/login?next=/deals")
    await reader.page.write("#email", email)
    await reader.page.write("#password", PASSWORD)
    await reader.press("Sign in")


@pytest.fixture
async def ann(live_site: ServedSite, chromium: Browser) -> AsyncIterator[Reader]:
    async with chromium.page() as page:
        yield await arrive(live_site, page, "Ann")


@pytest.fixture
async def ben(live_site: ServedSite, chromium: Browser) -> AsyncIterator[Reader]:
    async with chromium.page() as page:
        yield await arrive(live_site, page, "Ben")


async def list_business(ann: Reader) -> str:
    """Say what is sold in the forms, and show it to everyone; answers the listing's address."""
    page = ann.page
    async with httpx.AsyncClient(base_url=ann.site.url, headers={"Origin": ann.site.url}) as one:
        body = {"email": "ann@example.com", "password": PASSWORD}
        await one.post("/api/auth/login", json=body)
        own = (await one.get("/api/organizations")).json()["items"][0]["id"]
    await ann.see(f"/selling/new?organizationId={own}")
    await page.write("#title", "Enamel kettles")
    await page.write("#price", "190,000")
    await ann.press("Go on to the proof")
    await ann.press("Change")
    for field, text in {
        "least": "900,000",
        "category": "Kitchen",
        "country": "pt",
        "ttmProfit": "86,000",
        "includedAssets": "The store\nThe domain",
        "businessName": "Harrow & Tide",
        "profitAndLoss": "Better each year.",
    }.items():
        await page.write(f"#{field}", text)
    refused = await ann.press("Save the changes")
    assert "at most the asking price" in refused
    await page.write("#least", "150,000")
    await ann.look("00-edit")
    assert "It reads so from now on." in await ann.press("Save the changes")
    assert "Draft" in await ann.press("Buyers and sale")
    assert "Nobody has asked for access yet." in await ann.press("Show it to everyone")
    await ann.look("01-sale")
    address: str = await page.read(
        "document.querySelector(\"main a[href^='/listings/']\").pathname"
    )
    return address


async def ask(ben: Reader, listing: str) -> str:
    """Find the business on the market, watch it and ask for access; answers the deal's address."""
    found = await ben.see("/market?q=kettle&currency=usd&minPrice=100,000&sort=price_asc")
    assert "USD 190,000" in found
    assert "USD 86,000 Seller says" in found.replace("\n", " ")
    await ben.look("02-market")
    assert "Nothing fits all of it." in await ben.see("/market?q=teapots")
    wrong = await ben.see("/market?minPrice=100")
    assert "Say in which currency the amounts are." in wrong
    await ben.see(listing)
    await ben.press("Watch")
    assert "Enamel kettles" in await ben.see("/market/watched")
    await ben.see(listing)
    await ben.page.write("#message", "I keep three shops.")
    await ben.look("03-listing")
    said = await ben.press("Ask for access")
    assert "Seller's turn" in said
    return await ben.page.address()


async def agree(ann: Reader, ben: Reader, deal: str) -> None:
    """Come from the request to the accepted price."""
    assert "I keep three shops." in await ann.see(deal)
    await ann.look("04-asked")
    await ben.leave_the_mouse()
    await ann.move(deal, "Let them in")
    await ben.page.wait_for("#documents a[href*='/papers/']")  # in the room that was open already
    await ann.sign(deal, "NDA")

    # With a keyboard alone, on a telephone.
    await ben.see(deal, width=360)
    await ben.tab_to("a[href*='/papers/']")
    await ben.go()
    await ben.tab_to("#typedName")
    await ben.page.call("Input.insertText", text="Ben")
    await ben.tab_to("[name=consent]")
    await ben.key(" ", " ")
    await ben.look("05-sign")
    await ben.tab_to("form[action*='/papers/'] button")
    await ben.go()
    assert "Your signature is kept" in await ben.page.text("main")

    assert "Harrow & Tide" in await ben.press("Name, books and team")
    await ben.see(deal)
    await ben.press("Make an offer")
    await ben.page.write("#amount", "1,000")
    assert "must be at least" in await ben.press("Send the offer")
    await ben.page.write("#amount", "160,000")
    await ben.page.write("#contingencies", "The domain moves first")
    await ben.look("06-offer")
    await ben.press("Send the offer")
    assert "USD 160,000" in await ann.see(await sale_of(ann))
    await ann.look("07-side-by-side")
    await ann.see(deal)
    await ann.look("08-offered")
    await ann.press("Counter…")
    await ann.page.write("#amount", "182,000")
    await ann.press("Send the counter-offer")
    await ben.see(deal)
    await ben.press("Accept…")
    assert "The price is frozen" in await ben.page.text("main")
    said = await ben.press("Accept the offer")
    assert "Agreed: USD 182,000." in said


async def sale_of(ann: Reader) -> str:
    row = await ann.site.running.service.database.fetchrow("SELECT id FROM listings")
    assert row is not None
    return f"/selling/{row['id']}/sale"


async def bind(ann: Reader, ben: Reader, deal: str) -> None:
    """Come from the price to the signed purchase contract."""
    await ann.see(deal)
    await ann.press("Draw up: Letter of intent")
    for who in (ann, ben):
        await who.sign(deal, "Letter of intent")
    await ann.move(deal, "Begin the due diligence")
    for title in (
        "Verified revenue and its sources",
        "Accounts, contracts and suppliers",
        "The assets that are sold, and who owns them",
        "Debts, disputes and open orders",
    ):
        await ben.see(deal)
        await ben.press(f"Looked into: {title}")
    await ben.press("Draw up: Purchase contract")
    for who in (ann, ben):
        await who.sign(deal, "Purchase contract")
    await ben.see(deal)
    await ben.press("Purchase contract")
    said = await ben.press("Certificate")
    assert "each part is what was written" in said
    assert "Ann" in said
    await ben.look("14-certificate")
    await ben.press("Make a link for somebody else")
    link = await ben.page.read("document.querySelector('#link').value")
    assert link.startswith(f"{ben.site.url}/signatures/sig_")


async def hand_over(ann: Reader, ben: Reader, deal: str) -> None:
    await ann.move(deal, "Name the escrow", escrowId="4471")
    await ben.move(deal, "Say that you have paid")
    await ann.move(deal, "Say that the money is in escrow")
    await ann.move(deal, "Begin the handover")
    for title in ("The store", "The domain"):
        await ann.see(deal)
        await ann.press(f"Handed over: {title}")
    await ben.see(deal)
    await ben.look("09-handover")
    await ben.press("Reject: The store…")
    await ben.page.write("#reason", "The theme is missing.")
    assert "The other party is written to." in await ben.press("Reject it")
    assert "The theme is missing." in await ann.see(deal)
    await ann.press("Hand over again: The store")
    for title in ("The store", "The domain"):
        await ben.see(deal)
        await ben.press(f"Accept: {title}")
    await ann.move(deal, "Close the deal")


async def send_file(ann: Reader, ben: Reader, deal: str, folder: Path) -> None:
    """Put a file into the data room as from a disk, while the other party looks round there."""
    books = folder / "books.csv"
    books.write_text("month,revenue\n2026-10,39410\n")
    await ann.see(deal)
    await ann.page.read("document.querySelectorAll('details').forEach(one => { one.open = true })")
    tree = await ann.page.call("DOM.getDocument")
    node = await ann.page.call("DOM.querySelector", nodeId=tree["root"]["nodeId"], selector="#file")
    await ann.page.call("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[str(books)])
    chosen = "document.querySelector('#kind').value"
    await ann.page.read("document.querySelector('#kind').focus()")
    await ann.page.read(f"{chosen} = 'profit_and_loss'")
    await ben.see(f"{deal}/business")
    await ann.page.wait_for("#follows a:not([hidden])")
    assert await ann.page.read(chosen) == "profit_and_loss"
    assert await ann.page.read("document.querySelector('#file').files.length") == 1
    await ann.press("Add it")
    assert "books.csv" in await ann.page.text("main")


async def test_a_business_is_sold_on_pages_from_its_listing_to_its_closing(
    ann: Reader, ben: Reader, live_site: ServedSite, tmp_path: Path
) -> None:
    listing = await list_business(ann)
    deal = await ask(ben, listing)
    await agree(ann, ben, deal)
    await send_file(ann, ben, deal, tmp_path)
    assert "Opens with the due diligence" in await ben.see(deal)
    await bind(ann, ben, deal)
    assert "books.csv" in await ben.see(deal)
    await ben.look("10-room")
    await hand_over(ann, ben, deal)

    said = await ben.see(deal)
    assert "Ask for the money back…" in said
    assert "none is changed or missing" in await ben.press("Check all of it")
    await ben.look("11-ledger")
    assert "Sold" in await ben.see(listing)
    assert "Closed" in await ann.see("/deals")
    await ann.look("12-deals")
    for who in (ann, ben):
        assert [one for one in who.page.problems if "422" not in one] == []
    mails = await live_site.running.service.database.fetch("SELECT about FROM outbound_mail")
    assert any(row["about"].startswith(deal.removeprefix("/deals/")) for row in mails)


async def test_an_operator_reads_what_is_in_dispute_and_decides_on_its_page(
    ann: Reader, ben: Reader, live_site: ServedSite, chromium: Browser
) -> None:
    deal = await ask(ben, await list_business(ann))
    await agree(ann, ben, deal)
    await bind(ann, ben, deal)
    await ann.move(deal, "Name the escrow", escrowId="4471")
    await ann.move(deal, "Say that the money is in escrow", evidence="Provider's letter of today.")
    said = await ben.move(deal, "Open a dispute", reason="No domain.", evidence="Its registry.")
    assert "An operator decides" in said

    database = live_site.running.service.database
    await administrators.create_administrator(database, "op@example.com", PASSWORD)
    assert (
        "Only an administrator of this service can do this. Sign in with an administrator account."
        in await ben.see("/admin/disputes")
    )
    async with chromium.page() as page:
        operator = Reader(live_site, page, "Op")
        await enter(operator, "op@example.com")
        listed = await operator.see("/admin/disputes")
        assert "No domain." in listed
        assert "USD 182,000" in listed
        await operator.look("13-disputes")
        await operator.press(deal.removeprefix("/deals/"))
        await operator.press("Give the money back…")
        await operator.page.write("#reason", "The domain was sold before.")
        refused = await operator.press("Give the money back")
        assert "escrowReturned: true" in refused
        for box in ("escrowReturned", "assetsReturned"):
            await operator.page.choose(f"[name={box}]")
        await operator.press("Give the money back")
        assert "Nothing is in dispute." in await operator.see("/admin/disputes")
    assert "The domain was sold before." in await ann.see(deal)
    assert "Money given back" in await ben.see(deal)
