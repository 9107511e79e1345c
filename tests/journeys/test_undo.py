"""What an agent changed in a shop is taken back by a person on the store's pages, once, and only from where it is."""

import re
from html import unescape

import httpx
import orjson
import pytest

from tests.http.people import add_member
from tests.journeys.conftest import SHOP, Seller, sign_up
from tests.journeys.strangers import browsing
from tests.mcp.tools.shop import ITEM, PRODUCT, stocked
from tolsey.http.chat.toolbox import ModelCall
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES
from tolsey.service import Running
from tolsey.storage.commerce import stores

AGENT = "https://stock-clerk.example/client.json"


@pytest.fixture
async def keeper(seller: Seller, platform: Platform) -> Seller:
    """Somebody whose shop has a product on its shelf, and lets agents write."""
    platform.shop(SHOP).scopes = (*ALL_SCOPES, *WRITE_SCOPES)
    stocked(platform, SHOP)
    connected = await seller.connect()
    assert connected.status_code == 200, connected.text
    return seller


async def act(live: Running, seller: Seller, tool: str, **arguments: object) -> str:
    """Have an agent change something; answers the operation's id."""
    database = live.service.database
    me = await database.fetchrow("SELECT id FROM users WHERE email = 'seller@example.com'")
    row = await stores.find_for(database, seller.store_id, me["id"] if me else "")
    assert row is not None
    tools = await live.service.chat.tools_of_person(row[0], me["id"] if me else "", AGENT)
    written = orjson.dumps(arguments).decode()
    use = await tools.use(ModelCall(id="1", name=tool, arguments=written))
    assert use.plan is not None, use.text
    done = await tools.confirm(use.plan.sealed)
    assert done["status"] == "applied", done
    return str(done["operation_id"])


async def stock(live: Running, seller: Seller, delta: int) -> str:
    ids = {"inventory_item_id": str(ITEM), "location_id": str(LOCATION_ID)}
    return await act(live, seller, "adjust_inventory", **ids, delta=delta)


def available(platform: Platform) -> int:
    return platform.shop(SHOP).products[PRODUCT].variants[0].available


async def asked(browser: httpx.AsyncClient, store_id: str, act_id: str) -> httpx.Response:
    return await browser.post(f"/stores/{store_id}/acts/{act_id}/undo")


async def confirmed(
    browser: httpx.AsyncClient, store_id: str, act_id: str, shown: httpx.Response
) -> httpx.Response:
    (plan,) = re.findall(r'name="plan" value="([^"]*)"', shown.text)
    path = f"/stores/{store_id}/acts/{act_id}/undone"
    return await browser.post(path, data={"plan": unescape(plan)})


async def test_an_act_is_shown_taken_back_and_marked_and_never_taken_back_twice(
    live: Running, keeper: Seller, platform: Platform
) -> None:
    done = await stock(live, keeper, -3)
    assert available(platform) == 7
    path = f"/stores/{keeper.store_id}/acts"
    listed = (await keeper.browser.get(path)).text
    assert "stock-clerk.example" in listed
    assert "Changed the stock" in listed
    shown = await asked(keeper.browser, keeper.store_id, done)
    assert shown.status_code == 200, shown.text
    assert re.search(
        r"available</th>.*?>7<.*?>10<",
        shown.text.replace("<bdi>", "").replace("</bdi>", ""),
        re.DOTALL,
    )
    assert available(platform) == 7, "it was only shown"
    other = await asked(keeper.browser, keeper.store_id, done)
    taken = await confirmed(keeper.browser, keeper.store_id, done, shown)
    assert (taken.status_code, taken.headers["location"]) == (303, f"{path}?from=undo")
    assert available(platform) == 10
    # Who was shown it at the same time does not take it back once more, nor does anybody later.
    late = await confirmed(keeper.browser, keeper.store_id, done, other)
    again = await asked(keeper.browser, keeper.store_id, done)
    assert (late.status_code, again.status_code) == (409, 409)
    assert available(platform) == 10
    listed = (await keeper.browser.get(path)).text
    assert "Taken back by a person" in listed
    rows = await live.service.database.fetch(
        "SELECT metadata->>'clientId' AS client FROM audit_log WHERE event = 'agent.write' ORDER BY id"
    )
    assert [row["client"] for row in rows] == [AGENT, f"undo:{done}"]


async def test_two_who_take_back_at_once_move_the_stock_once(
    live: Running, keeper: Seller, platform: Platform
) -> None:
    """A sale in between is no reason to lose it either: it is told, and nothing is moved."""
    done = await stock(live, keeper, -3)
    shown = await asked(keeper.browser, keeper.store_id, done)
    platform.shop(SHOP).products[PRODUCT].variants[0].available -= 1
    late = await confirmed(keeper.browser, keeper.store_id, done, shown)
    assert late.status_code == 409
    assert "The item changed after the version" in late.text
    assert available(platform) == 6
    shown = await asked(keeper.browser, keeper.store_id, done)
    assert (await confirmed(keeper.browser, keeper.store_id, done, shown)).status_code == 303
    assert available(platform) == 9


async def test_what_somebody_changed_since_stays_as_they_left_it(
    live: Running, keeper: Seller, platform: Platform
) -> None:
    product = platform.shop(SHOP).products[PRODUCT]
    done = await act(live, keeper, "update_product", product_id=str(PRODUCT), title="Red shirt")
    product.title = "Green shirt"
    shown = await asked(keeper.browser, keeper.store_id, done)
    assert shown.status_code == 409
    assert "The item changed after the version" in shown.text
    assert product.title == "Green shirt"


async def test_only_an_owner_or_admin_of_the_store_takes_back(
    live: Running, keeper: Seller, platform: Platform
) -> None:
    done = await stock(live, keeper, -3)
    async with browsing(live, address="192.0.2.9") as elsewhere:
        other = await sign_up(elsewhere, "other@example.com")
        strange = await asked(elsewhere, keeper.store_id, done)
        foreign = await asked(elsewhere, other.store_id, done)
        await add_member(
            live.service.database, keeper.organization_id, "other@example.com", "member"
        )
        reader = await asked(elsewhere, keeper.store_id, done)
        listed = await elsewhere.get(f"/stores/{keeper.store_id}/acts")
    assert [one.status_code for one in (strange, foreign, reader)] == [404, 404, 403]
    assert "An owner or admin can." in listed.text
    assert available(platform) == 7
