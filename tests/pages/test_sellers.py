"""A seller's pages in a browser: connecting a store, and what becomes of its badge."""

from datetime import timedelta

import httpx

from tests.http.people import PASSWORD
from tests.journeys.conftest import SECRET, SHOP, Seller
from tests.pages.chromium import Page
from tests.pages.conftest import SELL, Bazaar, ServedSite
from tests.pages.test_first_pages import look
from tests.timing import until
from tolsey.actors.listing.messages import ReviewVerification, listing
from tolsey.storage.people import administrators

YEARS = 20 * 365 * 24 * 3600
LEFT_COLOUR = """new Promise(resolve => {
  const picture = document.querySelector('.badge-picture')
  const drawn = document.createElement('canvas').getContext('2d')
  const look = () => { drawn.drawImage(picture, 0, 0); resolve([...drawn.getImageData(4, 4, 1, 1).data].join()) }
  picture.complete ? look() : picture.onload = look
})"""


async def signed_in(page: Page, url: str, path: str, email: str = "seller@example.com") -> None:
    """Sign in in the browser, and go on to a page."""
    await page.open(f"{url}/login?next={path}")
    await page.write("#email", email)
    await page.write("#password", PASSWORD)
    await page.click("main button")


async def verified(seller: Seller) -> str:
    """Publish a listing whose revenue its shop proves; answer its id."""
    body = {
        "organizationId": seller.organization_id,
        "title": "Enamel kettles",
        "askingPrice": {"amount": 190_000_00, "currency": "USD"},
    }
    made = (await seller.post(SELL, **body)).json()
    path = f"{SELL}/{made['id']}"
    assert (await seller.post(f"{path}/publish")).status_code == 200
    begun = await seller.post(
        f"{path}/verify/commerce", shopDomain=SHOP, clientId="client-1", clientSecret=SECRET
    )
    assert begun.status_code == 200, begun.text

    async def is_done() -> bool:
        return (await state_of(seller, made["id"])) == "verified"

    await until(is_done)
    found: str = made["id"]
    return found


async def state_of(seller: Seller, listing_id: str) -> str:
    answer = await seller.browser.get(f"{SELL}/{listing_id}")
    found: str = answer.json()["verification"]["state"]
    return found


async def test_the_page_of_a_listing_shows_the_badge_as_it_is_now(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    listing_id = await verified(seller)
    await signed_in(page, bazaar.url, f"/selling/{listing_id}")
    green = await page.read(LEFT_COLOUR)
    bazaar.clock.advance(timedelta(hours=25))

    await page.open(f"{bazaar.url}/selling/{listing_id}")
    assert "Stale" in await page.text("main")
    assert await page.read(LEFT_COLOUR) != green

    doubted = ReviewVerification(verdict="fraud.flag", reason="odd", by="usr_1", at=bazaar.clock())
    await bazaar.running.service.runtime.ask(listing(listing_id), doubted)
    await page.open(f"{bazaar.url}/selling/{listing_id}")
    assert not await page.read("!!document.querySelector('.badge-picture')")
    assert page.problems == []


async def test_a_seller_takes_a_source_away_and_the_badge_with_it(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    listing_id = await verified(seller)
    await signed_in(page, bazaar.url, f"/selling/{listing_id}")

    await page.click("a[href$='/remove/commerce']")
    assert await page.text("h1") == f"Read {SHOP} no more?"
    assert "No badge shows without it" in await page.text("main")
    await look(page, "20-remove")
    await page.click("main .plain")
    assert await state_of(seller, listing_id) == "verified"
    await page.click("a[href$='/remove/commerce']")
    await page.click("main .danger")

    text = await page.text("main")
    assert "It is read no more, and its keys are erased here." in text
    assert "Nothing proves it yet." in text
    assert await state_of(seller, listing_id) == "revoked"
    assert page.problems == []


async def test_a_seller_changes_what_is_said_of_a_listing(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    listing_id = await verified(seller)
    least = {"minOffer": {"amount": 150_000_00, "currency": "USD"}}
    assert (await seller.browser.patch(f"{SELL}/{listing_id}", json=least)).status_code == 200
    await signed_in(page, bazaar.url, f"/selling/{listing_id}")
    assert "USD 190,000" in await page.text(".head")

    await page.click("a[href$='/edit']")
    assert await page.read("document.querySelector('#price').value") == "190,000"
    await look(page, "23-edit")
    await page.write("#title", "Copper <kettles>")
    await page.write("#teaser", "Sixty days of orders.")
    await page.write("#price", "205,000.50")
    await page.read("document.querySelector('#currency').removeAttribute('maxlength')")
    await page.write("#currency", "euro")
    await page.click("main button")
    assert await page.text("#currency-error") == "Enter three letters, such as USD."
    assert await page.read("document.querySelector('#title').value") == "Copper <kettles>"
    await page.write("#currency", "eur")
    await page.choose("[name=anonymous]")
    await page.click("main button")

    assert "It reads so from now on." in await page.text("main")
    assert await page.text("h1") == "Copper <kettles>"
    kept = (await seller.browser.get(f"{SELL}/{listing_id}")).json()
    assert kept["askingPrice"] == {"amount": 205_000_50, "currency": "EUR"}
    assert (kept["teaser"], kept["anonymous"]) == ("Sixty days of orders.", True)
    # The least offer stands on the form beside the price, in the price's currency.
    assert kept["minOffer"] == {"amount": 150_000_00, "currency": "EUR"}
    await page.click("a[href$='/edit']")
    assert await page.read("document.querySelector('#price').value") == "205,000.50"
    assert [one for one in page.problems if "status of 422" not in one] == []


async def test_a_listing_that_is_bound_is_not_changed_and_says_so(
    bazaar: Bazaar, seller: Seller
) -> None:
    listing_id = await verified(seller)
    assert (await seller.post(f"{SELL}/{listing_id}/withdraw")).status_code == 200
    assert "/edit" not in (await seller.browser.get(f"/selling/{listing_id}")).text
    answer = await seller.browser.post(f"/selling/{listing_id}/edit", data={"title": "Another"})
    assert answer.status_code == 409
    assert "be edited while its status is" in answer.text


async def test_a_badge_alone_asks_no_price_and_is_not_on_the_market(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await verified(seller)
    await signed_in(page, bazaar.url, f"/selling/new?organizationId={seller.organization_id}")
    assert await page.text("h1") == "Get a badge"
    await look(page, "24-badge-alone")
    await page.write("#title", "Hill Street Prints")
    await page.click("main form:not(.inline) button")
    assert "not for sale" in await page.text(".head")
    await page.click("form[action$='/publish'] button")
    assert "Everyone can see it now." in await page.text("main")
    await page.click("a[href^='/listings/']")

    assert "Not for sale" in await page.text("main")
    await look(page, "25-not-for-sale")
    market = (await seller.browser.get("/api/public/listings")).json()["items"]
    assert [one["title"] for one in market] == ["Enamel kettles"]
    assert page.problems == []


async def test_the_page_of_a_store_goes_on_by_itself_when_its_shop_is_set_up(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    # Its import begins with a mutation, too: whichever is first, one of its topics is not there yet.
    held = [bazaar.platform.faults.hold("mutation") for _ in range(2)]
    await signed_in(page, bazaar.url, f"/stores/{seller.store_id}/connect?shopDomain={SHOP}")
    await page.write("#clientId", "client-1")
    await page.write("#clientSecret", SECRET)
    await page.click("main button")
    text = await page.text("main")
    assert "This page looks again by itself." in text
    assert "Being set up" in text
    assert await page.text(".rail [aria-current]") == "Check"
    await look(page, "26-being-set-up")

    for one in held:
        one.set()

    # The page is told and renews its parts, without being loaded anew.
    async def is_done() -> bool:
        return "All 24 topics" in (await page.text("main"))

    await until(is_done)
    assert "arrives here within seconds" in await page.text(".notice")
    assert not await page.read("!!document.querySelector('[http-equiv=refresh]')")
    await look(page, "27-set-up")
    await page.click(".notice .button")
    assert await page.text("h1") == "Get a badge"
    assert page.problems == []


async def test_a_store_is_connected_with_the_one_token_of_its_app(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    token = bazaar.platform.shop(SHOP).issue_token(bazaar.platform.now(), YEARS).text
    await signed_in(page, bazaar.url, f"/stores/{seller.store_id}/connect")
    await page.write("#shopDomain", SHOP)
    await page.click("main button")
    await page.click("a[href$='with=token']")
    await look(page, "21-token")
    await page.write("#accessToken", "shpat_of_another_shop")
    await page.write("#clientSecret", SECRET)
    await page.click("main button")
    assert "The shop refused these keys" in await page.text("[role=alert]")
    assert await page.read("document.querySelector('#accessToken').value") == ""
    await page.write("#accessToken", token)
    await page.write("#clientSecret", SECRET)
    await page.click("main button")

    assert await page.address() == f"/stores/{seller.store_id}?from=connect"
    answer = await seller.browser.get(f"/api/stores/{seller.store_id}/integrations/commerce")
    assert answer.json()["tokenKind"] == "static"


async def test_the_menu_of_a_telephone_opens_and_closes_without_a_script(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await signed_in(page, bazaar.url, "/")
    for width in (390, 320):
        await page.open(f"{bazaar.url}/", width=width)
        shown = "document.querySelector('.side').getClientRects().length > 0"
        assert not await page.read(shown)
        await page.choose(".bar .button")
        assert await page.read(shown)
        assert await page.read("document.documentElement.scrollWidth") == width
        await page.choose(".side .close")
        assert not await page.read(shown)
    await look(page, "22-head")


async def test_pages_lead_to_the_documentation_and_operators_to_what_they_look_for(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    find = 'href="/admin/find"'
    assert 'href="/docs"' in (await visitor.get("/")).text
    for email, is_operator in (("ann@example.com", False), ("olga@example.com", True)):
        if is_operator:
            await administrators.create_administrator(
                live_site.running.service.database, email, PASSWORD
            )
            login = {"email": email, "password": PASSWORD}
            assert (await visitor.post("/api/auth/login", json=login)).status_code == 200
        else:
            body = {"email": email, "password": PASSWORD, "organizationName": "Ann's"}
            assert (await visitor.post("/api/auth/signup", json=body)).status_code == 201
        home = (await visitor.get("/")).text
        assert 'href="/docs"' in home
        assert (find in home) is is_operator
        for path in ("/docs", "/docs/start"):
            assert email in (await visitor.get(path)).text


async def test_a_mail_is_shown_with_its_time_and_an_invitation_says_what_tolsey_is(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    body = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "Ann's"}
    made = (await visitor.post("/api/auth/signup", json=body)).json()["organization"]
    path = f"/api/organizations/{made['id']}/members"
    sent = await visitor.post(path, json={"email": "bob@example.com", "role": "admin"})
    assert sent.status_code == 202, sent.text

    at = live_site.clock()
    time = f"{at.day} {at:%b %Y, %H:%M} UTC</time>"
    mails = (await visitor.get("/mail")).text
    assert time in mails
    mail = (await visitor.get("/mail/" + mails.partition('href="/mail/')[2].partition('"')[0])).text
    assert time in mail
    assert "uses tolsey to run its stores" in mail
