"""A merchant answers the form, begins the launch and moves it, in a browser, with and without a script."""

import asyncio

import anyio
import pytest

from tests import timing
from tests.http.launch.merchant import SPEC
from tests.http.people import PASSWORD
from tests.journeys.conftest import SHOP, Seller
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_first_pages import look
from tests.pages.test_money import photograph
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, LAUNCH_SCOPES, WRITE_SCOPES

ANSWERS = {
    "name": {"businessName": "Loom & Co"},
    "country": {"country": "us"},
    "goods": {"industry": "hand-woven blankets"},
    "contact": {"contactEmail": "hello@loom.example"},
    "location": {"location.name": "Mill", "location.city": "Salem"},
    "shipping": {"shipping.countries": "us, CA", "shipping.flatRate": "6.50"},
    "products": {"products": "Blanket; 120; 70\nScarf; 40"},
    "pricing": {"pricing.marginPercent": "50"},
}


@pytest.fixture
async def merchant(bazaar: Bazaar, seller: Seller) -> Seller:
    """Connect a shop whose app lacks one permission of those that a launch takes."""
    shop = bazaar.platform.shop(SHOP)
    granted = (*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES)
    shop.scopes = tuple(one for one in granted if one != "write_locations")
    connected = await seller.connect()
    assert connected.status_code == 200, connected.text
    return seller


async def sign_in(bazaar: Bazaar, page: Page, address: str) -> None:
    await page.open(f"{bazaar.url}/login?next={address}", width=1280)
    await page.write("#email", "seller@example.com")
    await page.write("#password", PASSWORD)
    await page.click("main button")


async def until(page: Page, selector: str, said: str) -> None:
    """Wait until the page says it by itself."""

    async def is_said() -> bool:
        return said in await page.read(f"document.querySelector('{selector}').innerText")

    await timing.until(is_said)


async def answer(bazaar: Bazaar, page: Page, address: str) -> None:
    """Answer question after question; one is left and come back to, one is answered wrongly at first."""
    for question, given in ANSWERS.items():
        assert await page.address() == f"{address}/answers/{question}", await page.text("main")
        for name, text in given.items():
            await page.write(f"[name='{name}']", text)
        if question == "goods":
            # Whoever leaves comes back to the question that they were at.
            await page.open(bazaar.url + address)
            assert await page.address() == f"{address}/answers/goods"
            await page.write("[name='industry']", given["industry"])
        if question == "products":
            await page.write("[name='products']", "Blanket for free")
            await page.click("main button")
            assert "as in: Blanket; 120; 70" in await page.text("main")
            await page.write("[name='products']", given["products"])
        await page.click("main button")


async def test_a_launch_is_told_question_by_question_begun_and_moved_on_its_page(
    bazaar: Bazaar, merchant: Seller, page: Page
) -> None:
    address = f"/stores/{merchant.store_id}/launch"
    await sign_in(bazaar, page, address)
    assert await page.address() == f"{address}/answers/name"
    await look(page, "launch-0-question")
    await answer(bazaar, page, address)
    assert await page.address() == f"{address}/answers/review"
    review = await page.text("main")
    assert "One milestone will be blocked" in review
    assert "write_locations" in review
    await look(page, "launch-1-review")
    await page.click("main form button")
    assert await page.address() == address

    # Nothing is pressed: the page follows the launch.
    await until(page, "#wants", "Set up the fulfilment location")
    await until(page, "#wants", "Blocked")
    await until(page, "#wants", "Approve the brand kit")
    assert "never given write_locations" in await page.text("#wants")
    accepts = await page.read("document.querySelector('#wants a[href^=https]').href")
    assert accepts == f"https://{SHOP}/admin/oauth/install?client_id=client-1"
    await look(page, "launch-2-cockpit")
    bazaar.platform.shop(SHOP).scopes = (*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES)
    assert (await merchant.connect()).status_code == 200

    # The picture is walked by the keyboard, in the order in which it is read.
    walked = await page.read(
        "[...document.querySelectorAll('.map a')].map(one => [one.tabIndex, one.innerText.split('.')[0]])"
    )
    assert len(walked) == 29
    assert walked[0] == [0, "Audit the connected store"]
    assert {tab for tab, _ in walked} == {0}

    await page.open(f"{bazaar.url}{address}/operations.location", width=1280)
    await page.click("form[action$='/rehearse'] button")
    assert "locationEdit" in await page.text("#dry")
    assert "Nothing has been sent." in await page.text("#dry")
    await look(page, "launch-3-dry-run")
    assert bazaar.platform.shop(SHOP).setup.location["name"] != "Mill"
    await page.click("form[action$='/run'] button")
    assert "Done" in await page.text("main .chip")
    assert bazaar.platform.shop(SHOP).setup.location["name"] == "Mill"

    await page.open(f"{bazaar.url}{address}/brand.approve", width=1280)
    await page.write("[name=note]", "As we talked")
    await page.click("button[formaction$='/done']")
    assert "As we talked" in await page.text("main")
    await photograph(page, "launch-4-milestone")
    await page.open(f"{bazaar.url}{address}", width=1280)
    await until(page, "#parts", "Upload brand assets")
    with anyio.fail_after(120):
        while not await page.read(
            "document.querySelector(`.node[href$='brand.assets']`).classList.contains('stands-good')"
        ):
            await asyncio.sleep(0.1)
    assert [one for one in page.problems if "ERR_ABORTED" not in one and "422" not in one] == []


async def test_a_launch_reads_without_a_script_and_shows_a_member_no_buttons(
    bazaar: Bazaar, merchant: Seller, page: Page
) -> None:
    body = {"storeId": merchant.store_id, "spec": SPEC}
    begun = await merchant.post("/api/wizard/store/launch", **body)
    assert begun.status_code == 201, begun.text
    address = f"/stores/{merchant.store_id}/launch"
    read = (await merchant.browser.get(address)).text
    assert "Waits for you" in read
    assert "Post-launch verification" in read
    await bazaar.running.service.database.execute("UPDATE members SET role = 'member'")
    shown = (await merchant.browser.get(f"{address}/operations.location")).text
    assert "/rehearse" not in shown
    refused = await merchant.browser.post(f"{address}/operations.location/run")
    assert refused.status_code == 403
    await page.call("Emulation.setScriptExecutionDisabled", value=True)
    async with merchant.browser.stream("GET", f"{address}/events") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
