"""A person buys, changes and gets money back, in a browser, and sees each on the billing page."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Page
from tests.pages.conftest import Till
from tolsey.http.layout.words import dollars
from tolsey.storage.people import administrators

PAY = "button[value=pay]"
PICTURES = os.environ.get("PAGES_PICTURES")
"""A folder for pictures of every step, for whoever wants to look at them."""


@pytest.fixture
async def operator(till: Till) -> AsyncIterator[httpx.AsyncClient]:
    email = "operator@example.com"
    await administrators.create_administrator(till.running.service.database, email, PASSWORD)
    async with httpx.AsyncClient(base_url=till.url, headers={"Origin": till.url}) as client:
        answer = await client.post("/api/auth/login", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        yield client


async def sign_up(till: Till, page: Page) -> str:
    """Sign up in the browser; answers the organization's id."""
    await page.open(f"{till.url}/signup")
    await page.write("#email", "ann@example.com")
    await page.write("#password", PASSWORD)
    await page.write("#organizationName", "Ann's Ceramics")
    await page.click("main button")
    await page.open(f"{till.url}/billing")
    found: str = await page.read("new URLSearchParams(location.search).get('organizationId')")
    return found


async def pay(page: Page, button: str = PAY) -> None:
    """Pay on the processor's page, to which a form of ours has led."""
    assert await page.text("h1") == "Checkout"
    if await page.read("!!document.querySelector('[name=terms]')"):
        await page.choose("[name=terms]")
    await page.click(button)


async def buy(page: Page, plan: str) -> None:
    """Choose a plan, and pay it on the processor's page."""
    await page.choose(f"[value={plan}]")
    await page.click("form[action='/billing/checkout'] button")
    await pay(page)


async def until(till: Till, page: Page, *wanted: str) -> str:
    """Look at the billing page until it says all this."""
    text = await page.text("main")
    with anyio.move_on_after(30):
        while any(one not in text for one in wanted):
            await anyio.sleep(0.1)
            id = await page.read("document.querySelector('[name=organizationId]').value")
            await page.open(f"{till.url}/billing?organizationId={id}")
            text = await page.text("main")
    assert [one for one in wanted if one not in text] == [], text
    return text


def problems(page: Page) -> list[str]:
    """List what went wrong in the browser; that the processor's pages have no sign is not ours."""
    return [one for one in page.problems if "favicon.ico" not in one]


async def photograph(page: Page, name: str) -> None:
    if PICTURES:
        await page.photograph(Path(PICTURES) / f"{name}.png", whole=True)


async def test_signup_checkout_upgrade_purchase_refund_and_dispute(
    till: Till, page: Page, operator: httpx.AsyncClient
) -> None:
    organization_id = await sign_up(till, page)
    assert await page.text("#plan .figure") == "Free"
    await photograph(page, "1-free")

    await buy(page, "pro")
    with anyio.fail_after(60):  # the page looks by itself until the payment is confirmed
        while await page.text("#plan .figure") != "Pro":
            page.loaded.clear()
            await page.loaded.wait()
    await until(till, page, "Active", "$49.00 available", "$79 per month")
    await photograph(page, "2-pro")

    await page.choose("[value=max_5x]")
    await page.click("form[action='/billing/change'] button")
    asked = await page.text("main")
    await photograph(page, "3-upgrade")
    await page.click("main button")
    await until(till, page, "Max 5x\n", "$149.00 available", "$199 per month")
    paid = till.made("invoice")[-1]
    tax = sum(one["amount"] for one in paid["total_taxes"])
    assert f"charged {dollars(paid['amount_paid'])} on " in asked
    assert f"{dollars(tax)} of it tax" in asked
    await photograph(page, "4-max")

    await page.write("#amount", "50")
    await page.click("form[action='/billing/credits'] button")
    await photograph(page, "5-checkout")
    await pay(page)
    with anyio.fail_after(60):  # as above, until the credits are booked
        while "Your credits are here." not in await page.text("main"):
            page.loaded.clear()
            await page.loaded.wait()
    await until(till, page, "$199.00 available", "Credits bought", "+$50.00")
    await photograph(page, "6-credits")

    bought = till.made("charge")[-1]["payment_intent"]
    body = {
        "organizationId": organization_id,
        "paymentRef": bought,
        "reason": "bought by mistake",
    }
    refunded = await operator.post("/api/admin/refunds", json=body)
    assert refunded.status_code == 201, refunded.text
    await until(till, page, "$149.00 available", "Taken back after a refund", "-$50.00")

    first, upgraded, *_ = till.made("charge")
    till.processor.open_dispute(first["id"])  # its period is over: nobody used what it brought
    till.processor.open_dispute(upgraded["id"])
    text = await until(till, page, "$0.00 available", "Taken back after a dispute", "-$149.00")
    assert "Max 5x" in text
    await photograph(page, "7-disputed")
    assert problems(page) == []


async def test_a_declined_upgrade_changes_nothing_and_says_why(till: Till, page: Page) -> None:
    await sign_up(till, page)
    await buy(page, "pro")
    await until(till, page, "Active")
    (customer,) = till.made("customer")
    till.processor.set_card(customer["id"], "decline")

    await page.choose("[value=max_20x]")
    await page.click("form[action='/billing/change'] button")
    await page.click("main button")
    assert "declined" in await page.text("[role=alert]")
    assert await page.text("#plan .figure") == "Pro"
    await until(till, page, "$49.00 available", "Pro\n")
    await photograph(page, "declined")


async def test_a_plan_is_cancelled_and_kept_after_all(till: Till, page: Page) -> None:
    await sign_up(till, page)
    await buy(page, "pro")
    await until(till, page, "Active")

    await page.click("a[href^='/billing/cancel']")
    assert "You keep Pro until" in await page.text("main")
    await page.read("document.querySelector('#feedback').value = 'unused'")
    await page.write("#comment", "We are <moving> on.")
    await photograph(page, "cancel")
    await page.click("main button")
    await until(till, page, "Ends on", "Free. Your stores stay.")
    (held,) = till.made("subscription")
    assert held["cancel_at_period_end"]
    assert held["cancellation_details"]["feedback"] == "unused"
    assert held["cancellation_details"]["comment"] == "We are <moving> on."
    await photograph(page, "cancelled")

    await page.click("a[href^='/billing/change']")
    await page.click("main button")
    await until(till, page, "Renews on", "Active")
    assert problems(page) == []


async def test_a_lower_plan_waits_for_the_end_of_the_period(till: Till, page: Page) -> None:
    await sign_up(till, page)
    await buy(page, "max_5x")
    await until(till, page, "Active", "$149.00 available")

    await page.choose("[value=pro]")
    await page.click("form[action='/billing/change'] button")
    assert "Nothing is charged now." in await page.text("main")
    await page.click("main button")
    await until(till, page, "Max 5x\n", "Pro, paid monthly")
    assert len(till.made("charge")) == 1
    await photograph(page, "downgrade")


async def test_a_buyer_who_turns_back_has_bought_nothing(till: Till, page: Page) -> None:
    await sign_up(till, page)
    await page.click("form[action='/billing/checkout'] button")
    await page.click("button[value=cancel]")
    assert await page.text("#plan .figure") == "Free"
    assert "Thank you" not in await page.text("main")
    assert till.made("charge") == []


async def test_the_portal_opens_and_leads_back(till: Till, page: Page) -> None:
    await sign_up(till, page)
    await buy(page, "pro")
    await until(till, page, "Active")
    await page.click("form[action='/billing/portal'] button")
    assert await page.text("h1") == "Billing portal"
    await page.click("a")
    assert await page.text("h1") == "Billing"
    assert problems(page) == []
