"""The pages of a store in a browser: its keys checked as they are typed, its pictures, and what it tells by itself."""

import json
from datetime import timedelta
from typing import Any

import anyio

from tests.journeys.conftest import SECRET, SHOP, Seller
from tests.mcp.tools.shop import ITEM, stocked
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_first_pages import look
from tests.pages.test_sellers import signed_in
from tests.timing import until
from tolsey.http.chat.toolbox import ModelCall
from tolsey.sandbox.commerce.shop.products import LOCATION_ID
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES
from tolsey.storage.commerce import stores

AGENT = "https://stock-clerk.example/client.json"


async def says(page: Page, selector: str, wanted: str) -> str:
    """Wait until a part of a page says something by itself."""
    look_for = f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"
    with anyio.fail_after(30):
        while wanted not in (said := await page.read(look_for)):
            await anyio.sleep(0.05)
    return str(said)


async def typed(page: Page, selector: str) -> str:
    value: str = await page.read(f"document.querySelector({json.dumps(selector)}).value")
    return value


async def test_keys_are_checked_while_they_are_typed_and_stay_where_they_are(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    connect = f"/stores/{seller.store_id}/connect"
    await signed_in(page, bazaar.url, connect)
    await page.write("#shopDomain", "kettles.example")
    await says(page, "#shopDomain-error", "Enter its .myshopify.com domain")
    await page.write("#shopDomain", f"https://{SHOP}/admin")
    await says(page, "#found", f"That is {SHOP}.")
    await look(page, "20-shop")
    await page.click("main form button")

    assert "The client id" in await page.text("#checked")
    await page.write("#clientId", "client-1")
    await says(page, "#checked", "A client id is given")
    await page.write("#clientSecret", "shpss_of_another_app")
    await says(page, "#checked", "The shop refuses these keys")
    assert "The shop refused these keys" in await page.text("[role=alert]")
    await look(page, "21-keys-refused")
    assert await typed(page, "#clientSecret") == "shpss_of_another_app"
    await page.write("#clientSecret", SECRET)
    text = await says(page, "#checked", "The shop lets us in")
    assert "All 6 permissions to read" in text
    assert await page.read("document.querySelector('[role=alert]')") is None
    assert (await typed(page, "#clientId"), await typed(page, "#clientSecret")) == (
        "client-1",
        SECRET,
    )
    await look(page, "22-keys-checked")
    kept = await seller.browser.get(f"/api/stores/{seller.store_id}/integrations/commerce")
    assert kept.json()["status"] is None, "what is only checked is kept nowhere"
    secrets = [one for one in page.requests if SECRET in one]
    assert secrets == [], "no address holds a secret"
    await page.click("main form:not(.inline) button")
    assert await page.address() == f"/stores/{seller.store_id}?from=connect"
    await says(page, "#connected", "arrives here within seconds")
    assert page.problems == []


async def opened(bazaar: Bazaar, seller: Seller) -> None:
    """Connect the shop, with a product on its shelf, and read what it sold before."""
    shop = bazaar.platform.shop(SHOP)
    shop.scopes = (*ALL_SCOPES, *WRITE_SCOPES)
    stocked(bazaar.platform, SHOP)
    assert (await seller.connect()).status_code == 200
    begun = await seller.browser.post(f"/stores/{seller.store_id}/order-history/begin")
    assert begun.status_code == 303, begun.text
    history = f"/api/stores/{seller.store_id}/order-history"
    with anyio.fail_after(60):
        while not (await seller.browser.get(history)).json()["knownSince"]:
            await anyio.sleep(0.05)
        path = f"/stores/{seller.store_id}"
        while "No orders in this time" in (await seller.browser.get(path)).text:
            await anyio.sleep(0.1)


async def by_agent(bazaar: Bazaar, seller: Seller, **arguments: Any) -> None:
    """Have an agent change the stock."""
    database = bazaar.running.service.database
    me = await database.fetchrow("SELECT id FROM users WHERE email = 'seller@example.com'")
    assert me is not None
    row = await stores.find_for(database, seller.store_id, me["id"])
    assert row is not None
    tools = await bazaar.running.service.chat.tools_of_person(row[0], me["id"], AGENT)
    ids = {"inventory_item_id": str(ITEM), "location_id": str(LOCATION_ID)}
    call = ModelCall(id="1", name="adjust_inventory", arguments=json.dumps({**ids, **arguments}))
    use = await tools.use(call)
    assert use.plan is not None, use.text
    assert (await tools.confirm(use.plan.sealed))["status"] == "applied"


async def test_a_store_shows_what_it_sold_and_tells_by_itself_what_is_new(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await opened(bazaar, seller)
    home = f"/stores/{seller.store_id}"
    await signed_in(page, bazaar.url, home)
    assert await page.text("h1") == "A store"
    assert await page.read("document.querySelectorAll('#sales svg rect').length") == 30
    assert await page.read("document.querySelectorAll('#sales svg path.before').length") == 1
    rows = await page.read("document.querySelectorAll('#sales table tbody tr').length")
    assert rows == 30, "the same numbers stand beside the pictures"
    await look(page, "23-store")
    before = await page.text("#sales .figures")
    # What is under the pointer is left as it is.
    await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    # Nothing is pressed: an order and an agent's act arrive.
    bazaar.clock.advance(timedelta(minutes=5))
    bazaar.platform.place_order(SHOP, email="jane@example.com")
    await by_agent(bazaar, seller, delta=-3)
    await says(page, "#acts", "Changed the stock")

    async def is_done() -> bool:
        return (await page.text("#sales .figures")) != before

    await until(is_done)
    await page.click("#sales .spans a:last-child")
    assert await page.read("document.querySelectorAll('#sales svg rect').length") == 12
    await look(page, "24-store-year")
    await page.click("#acts form button")
    assert await page.text("h1") == "Take it back?"
    await look(page, "25-undo")
    await page.click("main form:not(.inline) button")
    assert "Taken back. It is in the shop as it was before." in await page.text("main")
    await look(page, "26-acts")
    await page.open(f"{bazaar.url}{home}/settings")
    await look(page, "27-settings")
    await page.open(f"{bazaar.url}{home}/delete")
    await page.write("#name", "Another store")
    await page.click("main form:not(.inline) button")
    assert "That is another name" in await page.text("#name-error")
    await look(page, "28-delete")
    await page.write("#name", "A store")
    await page.click("main form:not(.inline) button")
    assert await page.address() == "/"
    assert [one for one in page.problems if "status of 4" not in one] == []
