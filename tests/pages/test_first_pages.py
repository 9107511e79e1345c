"""A merchant's first hour in a browser: from an invitation to a connected store, a verified badge and a paid plan."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import httpx
import pytest

from tests.http.payments.market import catalogue
from tests.http.people import PASSWORD, settings_of
from tests.journeys.conftest import SECRET, SHOP, free_port
from tests.pages.chromium import Page
from tests.pages.conftest import WEBHOOK_SECRET, Till, served
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tests.pages.test_money import buy, photograph, problems
from tolsey.http.clients.payments.client import make_client
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor


@dataclass
class Street(Till):
    """The service with a shop of the commerce platform and a payment processor beside it."""

    platform: Platform


@pytest.fixture
async def street(chromium_path: str, database_url: str, redis_url: str) -> AsyncIterator[Street]:
    port, processor, platform = free_port(), Processor(), Platform()
    url = f"http://127.0.0.1:{port}"
    history = make_history(seed=3, days=60, orders=120)
    platform.add_shop(
        ShopSpec(domain=SHOP, client_id="client-1", client_secret=SECRET, orders=history)
    )
    async with processor.serve() as payments_url, platform.serve():
        client = make_client(SECRET_KEY, payments_url)
        prices = await catalogue(client)
        await client.close()
        processor.open_endpoint(f"{url}/api/webhooks/payments", WEBHOOK_SECRET)
        settings = settings_of(
            base_url=url,
            database_url=database_url,
            redis_url=redis_url,
            commerce_url_template=platform.url_template,
            payments_secret_key=SECRET_KEY,
            payments_webhook_secret=WEBHOOK_SECRET,
            payments_api_base=payments_url,
            **{name.lower(): id for name, id in prices.items()},
        )
        async with served(settings, port) as opened:
            yield Street(opened.url, opened.clock, opened.running, processor, platform)


async def until(page: Page, *wanted: str, address: str | None = None) -> str:
    """Look at a page, or go to another, until it says all this."""
    url = address or await page.read("location.href")
    text = await page.text("main")
    with anyio.move_on_after(60):
        while any(one not in text for one in wanted):
            await anyio.sleep(0.1)
            await page.open(url)
            text = await page.text("main")
    assert [one for one in wanted if one not in text] == [], text
    return text


async def look(page: Page, name: str) -> None:
    """See that a page can be read, named and held in a hand, in light and in dark."""
    for theme in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": theme}]
        await page.call("Emulation.setEmulatedMedia", features=media)
        for width in (1280, 390):
            await page.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=800,
                deviceScaleFactor=1,
                mobile=False,
            )
            await photograph(page, f"{name}-{width}-{theme}")
            texts = await page.read(TEXTS)
            assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []
            assert await page.read("document.documentElement.scrollWidth") == width
    # What is folded has no text of its own until it is opened.
    await page.read("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert await page.read(UNNAMED) == []
    await page.call("Emulation.setEmulatedMedia", features=[])


async def invite(street: Street, email: str) -> None:
    """Have the founder of an organization invite someone to run it."""
    founder = {"email": "founder@example.com", "password": PASSWORD}
    async with httpx.AsyncClient(base_url=street.url, headers={"Origin": street.url}) as client:
        body = {**founder, "organizationName": "Harrow & Tide"}
        made = (await client.post("/api/auth/signup", json=body)).json()["organization"]
        path = f"/api/organizations/{made['id']}/members"
        invited = await client.post(path, json={"email": email, "role": "owner"})
        assert invited.status_code == 202, invited.text


async def join(street: Street, page: Page) -> None:
    """Come by the mail of an invitation, without an account, and belong to the organization."""
    await page.open(f"{street.url}/")
    await look(page, "00-welcome")
    await page.open(f"{street.url}/mail")
    await page.click("main table a")
    await page.open(
        await page.read("document.querySelector('main a[href*=\"/invitations/\"]').href")
    )
    assert await page.text("h1") == "Join Harrow & Tide"
    await look(page, "00-invitation")
    await page.click("main a.button")
    assert await page.read("document.querySelector('#email').value") == "ann@example.com"
    await page.write("#password", PASSWORD)
    await page.write("#organizationName", "Ann's own")
    await page.click("main button")
    assert await page.text("h1") == "Join Harrow & Tide"
    await page.click("main button")
    assert "You belong here now." in await page.text("main")
    await page.click(".bar .brand")
    assert await page.address() == "/"
    assert "Harrow & Tide" in await page.text("main")


async def connect_a_store(page: Page) -> None:
    """Go the steps from a name to a store that works; the first secret that is pasted is wrong."""
    assert await page.text("h1") == "One thing needs you"
    await look(page, "01-home-empty")
    await page.click("main .line .button")
    await look(page, "02-new-store")
    await page.write("#name", "Ferncroft Kettles")
    await page.click("main button")
    assert await page.text("h1") == "Which shop is it?"
    await page.write("#shopDomain", "kettles.example")
    await page.click("main button")
    assert "Enter its .myshopify.com domain" in await page.text("#shopDomain-error")
    await look(page, "03-shop-wrong")
    await page.write("#shopDomain", f"https://{SHOP}/admin")
    await page.click("main button")
    await page.write("#clientId", "client-1")
    await page.write("#clientSecret", "shpss_of_another_app")
    await page.click("main form:not(.inline) button")
    assert await page.read("document.querySelector('#clientId').value") == "client-1"
    assert await page.read("document.querySelector('#clientSecret').value") == ""
    assert await page.read("document.querySelector('.notice').getAttribute('role')") == "alert"
    assert "The shop refused these keys" in await page.text(".notice")
    await look(page, "04-keys-refused")
    await page.write("#clientSecret", SECRET)
    await page.click("main form:not(.inline) button")
    assert await page.text("h1") == "Ferncroft Kettles"
    text = await until(page, "Works", "All 24 topics", "Nothing. It works.")
    assert "The shop let us in" in text
    await look(page, "05-store")


async def prove_revenue(page: Page) -> None:
    """Begin a listing, prove it by the store, and show it: the processor asks first who is paid."""
    await page.click("a[href^='/selling/new']")
    assert await page.read("document.querySelector('#title').value") == "Ferncroft Kettles"
    await page.write("#title", "Enamel and copper kettles")
    await page.write("#domain", "")
    await page.write("#price", "190,000")
    await look(page, "06-new-listing")
    await page.click("main form:not(.inline) button")
    assert await page.text("h1") == "Enamel and copper kettles"
    await look(page, "07-listing-unproven")
    await page.click("form[action$='/prove/store'] button")
    await until(page, "Verified", "The revenue is proven.")
    await page.click("form[action$='/publish'] button")
    assert "payout account" in await page.text("[role=alert]")
    await look(page, "08-who-is-paid")
    back = await page.read("location.href")
    await page.click("form[action='/selling/payout-account'] button")
    await page.click("button[value=submit]")
    await page.open(back.removesuffix("/publish"))
    await page.click("form[action$='/publish'] button")
    text = await page.text("main")
    assert "Everyone can see it now." in text
    assert await page.read("document.querySelector('.badge-picture').naturalWidth") > 100
    await look(page, "09-listing")


async def test_from_an_invitation_to_a_connected_store_a_badge_and_a_paid_plan(
    street: Street, page: Page
) -> None:
    await invite(street, "ann@example.com")
    await join(street, page)
    await connect_a_store(page)
    await prove_revenue(page)

    seller = await page.read("location.href")
    await page.click("a[href^='/listings/']:not([href$='/check'])")
    assert "Verified revenue" in await page.text("#proof")
    assert "Seller says" not in await page.text("main")
    picture = await page.read("document.querySelector('[property=\"og:image\"]').content")
    async with httpx.AsyncClient() as elsewhere:
        assert (await elsewhere.get(picture)).headers["content-type"] == "image/png"
    await look(page, "10-public")
    await page.click("a[href$='/check']")
    await page.wait_for("[data-outcome=right]:not([hidden])")
    await look(page, "11-check")

    await page.open(seller)
    await page.read("document.querySelector('#revenue30d').value = 'bucket'")
    await page.click("form[action$='/visibility'] button")
    assert "It is shown so from now on" in await page.text("main")
    proof = await page.read(
        "fetch(document.querySelector('a[download]').href).then(answer => answer.text())"
    )
    await page.click("a[href$='/check']")
    await page.wait_for("[data-outcome=right]:not([hidden])")
    assert (
        json.loads(await page.read("document.querySelector('#signed').value"))["revenue30d"] is None
    )
    await hand_over(page, proof)

    await page.open(f"{street.url}/billing")
    await buy(page, "pro")
    with anyio.fail_after(60):
        while await page.text("#plan .figure") != "Pro":
            page.loaded.clear()
            await page.loaded.wait()
    text = await until(page, "Nothing needs you", "Plan: Pro.", address=f"{street.url}/")
    assert "Ferncroft Kettles" in text
    assert "$49.00" in text
    await look(page, "12-home")
    # Chromium also tells of every answer that refuses a form.
    assert [one for one in problems(page) if "status of 4" not in one] == []


async def hand_over(page: Page, proof: str) -> None:
    """Check what a seller hands over: the exact numbers, and what somebody made of them."""
    await check(page, proof, "right", "opened")
    assert "Revenue, 30 days" in await page.text("[data-opening]")
    await look(page, "11-check-opened")
    forged = json.loads(proof)
    forged["opening"]["revenue30d"] += 1
    await check(page, json.dumps(forged), "right", "not-opened")
    forged = json.loads(proof)
    forged["document"]["ranges"]["revenue30d"]["from"] += 1
    await check(page, json.dumps(forged), "wrong")
    await check(page, "{}", "unreadable")
    await look(page, "11-check-unreadable")


async def check(page: Page, document: str, *outcomes: str) -> None:
    """Test a document, and see that these are the outcomes."""
    await page.read(f"document.querySelector('#signed').value = {json.dumps(document)}")
    await page.read("document.querySelector('[data-outcomes]').dataset.settled = ''")
    await page.read(
        "new Promise(resolve => {"
        "const seen = new MutationObserver(() => resolve());"
        "seen.observe(document.querySelector('[data-outcomes]'), {subtree: true, attributes: true});"
        "document.querySelector('[data-form]').requestSubmit()}).then(() => true)"
    )
    shown = await page.read(
        "[...document.querySelectorAll('[data-outcome]:not([hidden])')].map(one => one.dataset.outcome)"
    )
    assert shown == list(outcomes)
