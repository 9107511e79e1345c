"""The billing page: what it shows to whom, and which forms it takes from whom."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.http.people import PASSWORD, add_member
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite, Till
from tests.pages.test_badge import READABLE, contrast
from tests.timing import until
from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.actors.organization.ledger.messages import CreditsView, Grant, Standing
from tolsey.http.answers.money.credits import CreditsAnswer, LedgerEntryAnswer
from tolsey.http.billing.pages import MOST_LOOKS
from tolsey.http.billing.views import BillingAccount, BillingPage
from tolsey.http.layout.templates import rendered
from tolsey.http.layout.words import credit, dollars, moved
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.records.money.credits import CreditEntry, postings

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANN = OrganizationRow(
    id="org_1",
    name="Ann's <Ceramics>",
    plan="pro",
    rules={},
    created_at=AT - timedelta(days=3),
    role="owner",
)
HELD = SubscriptionView(
    organization_id="org_1",
    created_at=AT - timedelta(days=3),
    plan="pro",
    cadence="monthly",
    customer_id="cus_1",
    subscription_id="sub_1",
    price_id="price_1",
    status="active",
    period_start=AT,
    period_end=AT + timedelta(days=30),
)
FORMS = ("checkout", "change", "cancel", "portal", "credits")
# Every text of a page with the colours it is written in and on, as hexadecimal words.
TEXTS = """(() => {
  const hex = colour => '#' + colour.match(/[\\d.]+/g).slice(0, 3)
    .map(part => Math.round(part).toString(16).padStart(2, '0')).join('')
  const ground = element => {
    for (let one = element; one; one = one.parentElement) {
      const found = getComputedStyle(one).backgroundColor
      if (found !== 'rgba(0, 0, 0, 0)') return hex(found)
    }
  }
  return [...document.querySelectorAll('body *')]
    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(one => [one.innerText, hex(getComputedStyle(one).color), ground(one)])
})()"""


def account(**changed: Any) -> BillingAccount:
    credits = CreditsAnswer.of(
        CreditsView(
            standing=Standing(seq=0, balance=0, available=0, held=0), grants=(), next_expiry=None
        )
    )
    return replace(BillingAccount(ANN, HELD, credits, None, (), AT), **changed)


def written(shown: BillingAccount) -> str:
    return rendered(BillingPage(account=shown), "ann@example.com")


async def signed_up(client: httpx.AsyncClient, email: str = "ann@example.com") -> str:
    body = {"email": email, "password": PASSWORD, "organizationName": "Ann's <Ceramics>"}
    made = await client.post("/api/auth/signup", json=body)
    assert made.status_code == 201, made.text
    found: str = made.json()["organization"]["id"]
    return found


@pytest.fixture
async def buyer(till: Till) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=till.url, headers={"Origin": till.url}) as client:
        yield client


class TestWhatIsShown:
    def test_a_payment_that_failed_is_said_with_the_link_to_pay_it(self) -> None:
        url = "https://invoice.example/i/1?a=b&c"
        late = replace(HELD, status="past_due", dunning_since=AT, dunning_url=url)
        page = written(account(held=late))
        assert "could not be collected" in page
        assert 'href="https://invoice.example/i/1?a=b&amp;c"' in page
        assert "Payment failed" in page

    def test_a_link_that_is_no_web_address_is_not_one(self) -> None:
        late = replace(HELD, dunning_since=AT, dunning_url="javascript:alert(1)")
        page = written(account(held=late))
        assert "could not be collected" in page
        assert "javascript:" not in page

    def test_what_comes_at_the_end_of_the_period_is_told(self) -> None:
        waiting = replace(HELD, schedule_id="ss_1", next_plan="max_5x", next_cadence="yearly")
        assert "Changes on" in written(account(held=waiting))
        assert "Max 5x, paid yearly" in written(account(held=waiting))
        assert "Keep Pro" in written(account(held=waiting))
        ending = written(account(held=replace(HELD, cancel_at_period_end=True)))
        assert "Ends on" in ending
        assert "Cancel plan" not in ending

    def test_credits_below_zero_are_explained(self) -> None:
        owing = CreditsView(
            standing=Standing(seq=3, balance=-2_000_000, available=-2_000_000, held=0),
            grants=(),
            next_expiry=None,
        )
        page = written(account(credits=CreditsAnswer.of(owing)))
        assert "-$2.00" in page
        assert "took back credits that were already used" in page

    def test_grants_are_listed_with_what_is_left_and_when_it_expires(self) -> None:
        grant = Grant(
            id="g",
            kind="bonus",
            amount=9_000_000,
            remaining=4_500_001,
            granted_at=AT,
            expires_at=AT + timedelta(days=9),
            reference=None,
        )
        found = CreditsView(
            standing=Standing(seq=1, balance=4_500_001, available=4_000_000, held=500_001),
            grants=(grant,),
            next_expiry=grant.expires_at,
        )
        page = written(account(credits=CreditsAnswer.of(found)))
        for said in ("$4.00", "$4.500001", "$9.00", "$0.500001", "30 Nov 2026", "Bonus"):
            assert said in page

    def test_what_expired_and_what_was_granted_are_two_lines(self) -> None:
        """A new period whose allowance is as high as what expired changes no sum, and yet a lot."""
        entry = CreditEntry(
            organization_id="org_1", seq=2, key="k", kind="reset", reference="in_2", at=AT, hash="h"
        )
        moves = (("expired", "lot:a", 49_000_000), ("lot:b", "promo", 49_000_000))
        page = written(
            account(entries=[LedgerEntryAnswer.of((entry, postings("org_1", 2, moves)))])
        )
        for said, amount in (("Expired<", "-$49.00"), ("new period<", "+$49.00")):
            assert amount in next(row for row in page.split("<tr>")[1:] if said in row)

    def test_a_plan_by_contract_offers_nothing_to_buy_but_credits(self) -> None:
        page = written(account(held=replace(HELD, plan="custom", subscription_id=None)))
        assert "By contract" in page
        assert 'name="plan"' not in page
        assert "/billing/credits" in page

    def test_a_year_can_be_paid_once_the_organization_is_older_than_thirty_days(self) -> None:
        assert 'value="yearly" disabled' in written(account())
        old = replace(HELD, created_at=AT - timedelta(days=31))
        assert 'value="yearly" required' in written(account(held=old))

    def test_a_member_is_shown_everything_and_no_form_that_costs_money(self) -> None:
        page = written(account(organization=replace(ANN, role="member")))
        assert "Only owners and admins" in page
        assert 'action="/billing/' not in page
        assert "/billing/cancel" not in page

    def test_names_are_text_and_never_markup(self) -> None:
        page = written(account())
        assert "Ann&#39;s &lt;Ceramics&gt;" in page
        assert "<Ceramics>" not in page

    def test_amounts_are_written_to_the_last_digit(self) -> None:
        assert [credit(micro) for micro in (0, 49_000_000, 1_234_567_890_000, 1, -10_000)] == [
            "$0.00",
            "$49.00",
            "$1,234,567.89",
            "$0.000001",
            "-$0.01",
        ]
        assert (dollars(7_900), dollars(1_050)) == ("$79", "$10.50")
        assert (moved(5_000_000), moved(-5_000_000)) == ("+$5.00", "-$5.00")


async def test_without_an_organization_named_the_callers_first_is_shown(
    visitor: httpx.AsyncClient,
) -> None:
    id = await signed_up(visitor)
    await visitor.post("/api/organizations", json={"name": "Hill Street"})
    sent = await visitor.get("/billing?from=sponsor")
    assert sent.headers["location"] == f"/billing?organizationId={id}&from=sponsor"
    shown = await visitor.get(sent.headers["location"])
    assert "Thank you for sponsoring us." in shown.text
    assert "Hill Street" in shown.text


async def test_the_page_of_others_is_a_page_that_does_not_exist(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    async with httpx.AsyncClient(
        base_url=live_site.url, headers={"Origin": live_site.url}
    ) as other:
        foreign = await signed_up(other)
    await signed_up(visitor, "eve@example.com")
    for id in (foreign, "org_0", "", "%00"):
        for path in ("/billing", "/billing/change", "/billing/cancel"):
            answer = await visitor.get(f"{path}?organizationId={id}")
            assert answer.status_code == (400 if id == "%00" else 404)
            assert "Ceramics" not in answer.text.split("<main")[-1]
    for path in FORMS:
        body = {"organizationId": foreign, "plan": "pro", "cadence": "monthly", "amount": "50"}
        answer = await visitor.post(f"/billing/{path}", data=body)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"].startswith("text/html")


async def test_a_form_from_elsewhere_or_of_no_one_buys_nothing(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    body = {"organizationId": await signed_up(buyer), "plan": "pro", "cadence": "monthly"}
    for path in FORMS:
        for origin in ("https://evil.example", "null"):
            forged = await buyer.post(f"/billing/{path}", data=body, headers={"Origin": origin})
            assert forged.status_code == 403, path
        async with httpx.AsyncClient(base_url=till.url, headers={"Origin": till.url}) as nobody:
            answer = await nobody.post(f"/billing/{path}", data=body)
            assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert till.made("checkout.session") == []


async def test_a_member_cannot_spend_the_organizations_money(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    id = await signed_up(buyer)
    async with httpx.AsyncClient(base_url=till.url, headers={"Origin": till.url}) as member:
        await signed_up(member, "bob@example.com")
        await add_member(till.running.service.database, id, "bob@example.com", "member")
        body = {"organizationId": id, "plan": "pro", "cadence": "monthly", "amount": "50"}
        assert (await member.get(f"/billing?organizationId={id}")).status_code == 200
        for path in FORMS:
            answer = await member.post(f"/billing/{path}", data=body)
            assert answer.status_code == 403, path
            assert "Ask a member with the role admin or higher to do it." in answer.text
        for path in ("change", "cancel"):
            assert (await member.get(f"/billing/{path}", params=body)).status_code == 403
    assert till.made("checkout.session") == []


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("", "such as 50"),
        ("abc", "such as 50"),
        ("1e3", "such as 50"),
        ("-50", "between 5 and 5,000"),
        ("49.999", "such as 50"),
        ("10,50", "such as 50"),
        ("1,0", "such as 50"),
        (",500", "such as 50"),
        ("1000,000", "such as 50"),
        ("5.0,0", "such as 50"),
        ("\u0665\u0660", "such as 50"),
        ('"><script>', "such as 50"),
        ("4.99", "between 5 and 5,000"),
        ("5000.01", "between 5 and 5,000"),
        ("9999999", "between 5 and 5,000"),
    ],
)
async def test_an_amount_that_cannot_be_bought_is_said_beside_its_field(
    till: Till, buyer: httpx.AsyncClient, amount: str, said: str
) -> None:
    body = {"organizationId": await signed_up(buyer), "amount": amount}
    answer = await buyer.post("/billing/credits", data=body)
    assert answer.status_code == 422
    assert 'id="amount-error"' in answer.text
    assert said in answer.text.split('id="amount-error"')[1].split("</p>")[0]
    assert "<script>" not in answer.text
    assert till.made("checkout.session") == []


@pytest.mark.parametrize(
    ("amount", "cents"), [("$1,250.5", 1_250_50), (" 5 ", 5_00), ("4,000", 4_000_00)]
)
async def test_a_purchase_leads_to_the_processor_and_is_written_down(
    till: Till, buyer: httpx.AsyncClient, amount: str, cents: int
) -> None:
    body = {"organizationId": await signed_up(buyer), "amount": amount}
    answer = await buyer.post("/billing/credits", data=body)
    assert answer.status_code == 303
    (made,) = till.made("checkout.session")
    assert answer.headers["location"] == made["url"]
    assert made["amount_subtotal"] == cents
    rows = await till.running.service.database.fetch(
        "SELECT actor, organization_id FROM audit_log WHERE event = 'credits.purchase_started'"
    )
    assert [row["organization_id"] for row in rows] == [body["organizationId"]]
    assert rows[0]["actor"].startswith("usr_")


async def test_a_change_confirmed_twice_at_once_is_paid_once(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    id = await signed_up(buyer)
    body = {"organizationId": id, "plan": "pro", "cadence": "monthly"}
    checkout = await buyer.post("/billing/checkout", data=body)
    page = checkout.headers["location"]
    paid = await buyer.post(page, data={"action": "pay", "terms": "yes"})
    assert paid.status_code == 303
    await says(buyer, id, "Active")

    more = {**body, "plan": "max_5x"}

    # the events of a purchase arrive separately, in any order
    async def is_done() -> bool:
        return (await buyer.get("/billing/change", params=more)).status_code == 200

    await until(is_done)
    answers = await asyncio.gather(*(buyer.post("/billing/change", data=more) for _ in range(2)))
    assert 303 in {answer.status_code for answer in answers}
    assert {answer.status_code for answer in answers} <= {303, 409}
    await says(buyer, id, "$149.00 <small>available")
    assert [charge["status"] for charge in till.made("charge")] == ["succeeded"] * 2


async def says(client: httpx.AsyncClient, id: str, wanted: str) -> None:
    """Look at the billing page until it says this."""

    async def is_done() -> bool:
        return wanted in (await client.get(f"/billing?organizationId={id}")).text

    await until(is_done)


async def test_attempts_to_buy_credits_are_limited_and_the_page_says_until_when(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    body = {"organizationId": await signed_up(buyer), "amount": "4"}
    for _ in range(10):
        assert (await buyer.post("/billing/credits", data=body)).status_code == 422
    refused = await buyer.post("/billing/credits", data={**body, "amount": "50"})
    assert refused.status_code == 429
    assert "Too many attempts. Try again in" in refused.text
    assert int(refused.headers["retry-after"]) > 0
    assert till.made("checkout.session") == []


async def test_forms_may_be_sent_on_to_the_processor_and_nowhere_else(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    id = await signed_up(buyer)
    shown = await buyer.get(f"/billing?organizationId={id}")
    policy = shown.headers["content-security-policy"]
    assert f"form-action 'self' {till.processor.url};" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self';" in policy
    assert shown.headers["cache-control"] == "no-store"


async def test_what_cannot_be_chosen_is_said_on_the_page(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    id = await signed_up(buyer)
    for plan, cadence, status in (
        ("free", "monthly", 422),
        ("custom", "monthly", 422),
        ("gold", "monthly", 422),
        ("pro", "weekly", 422),
        ("pro", "yearly", 403),
    ):
        body = {"organizationId": id, "plan": plan, "cadence": cadence}
        bought = await buyer.post("/billing/checkout", data=body)
        asked = await buyer.get("/billing/change", params=body)
        assert (bought.status_code, asked.status_code) == (status, status), body
        assert 'role="alert"' in bought.text
        assert "<h1>Billing</h1>" in asked.text
    for path in ("change", "cancel"):  # without a subscription there is nothing to ask about
        body = {"organizationId": id, "plan": "pro", "cadence": "monthly"}
        asked = await buyer.get(f"/billing/{path}", params=body)
        assert (asked.status_code, asked.headers["location"]) == (
            303,
            f"/billing?organizationId={id}",
        )
    changed = await buyer.post("/billing/change", data={"organizationId": id, "plan": "pro"})
    assert changed.status_code == 409
    assert "Your organization has no subscription" in changed.text
    assert till.made("checkout.session") == []


async def test_without_a_processor_the_page_says_which_setting_is_missing(
    visitor: httpx.AsyncClient,
) -> None:
    body = {"organizationId": await signed_up(visitor), "plan": "pro", "cadence": "monthly"}
    answer = await visitor.post("/billing/checkout", data=body)
    assert answer.status_code == 503
    assert "This is not set up here yet: PAYMENTS_SECRET_KEY is not set." in answer.text


async def test_a_processor_that_is_away_is_said_and_nothing_is_sold(
    till: Till, buyer: httpx.AsyncClient
) -> None:
    id = await signed_up(buyer)
    till.processor.faults.status(500, times=3, path="/v1/checkout")
    body = {"organizationId": id, "plan": "pro", "cadence": "monthly"}
    answer = await buyer.post("/billing/checkout", data=body)
    assert answer.status_code == 502
    assert 'role="alert"' in answer.text
    assert till.made("checkout.session") == []


@pytest.mark.parametrize("bought", ["from=checkout", "from=credits&after=0"])
async def test_the_page_stops_looking_for_a_payment_that_does_not_come(
    visitor: httpx.AsyncClient, bought: str
) -> None:
    path = f"/billing?organizationId={await signed_up(visitor)}&{bought}"
    looks = 0
    while "http-equiv" in (shown := await visitor.get(path)).text:
        looks += 1
        path = shown.text.split(";url=")[1].split('"')[0].replace("&amp;", "&")
        assert path.startswith("/billing?")
        assert looks <= MOST_LOOKS
    assert looks == MOST_LOOKS
    for forged in ("-1", "x", "100", "\u0665"):
        shown = await visitor.get(f"{path}&looks={forged}", params=None)
        assert shown.status_code == 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_word_is_readable_by_day_and_by_night(
    live_site: ServedSite, page: Page, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    await page.call("Emulation.setEmulatedMedia", features=features)
    await page.open(f"{live_site.url}/signup")
    await page.write("#email", "ann@example")
    await page.read("document.querySelector('main form').noValidate = true")
    await page.click("main button")
    texts = await page.read(TEXTS)
    for name, value in (("email", "ann@example.com"), ("password", PASSWORD)):
        await page.write(f"#{name}", value)
    await page.write("#organizationName", "Ann's")
    await page.click("main button")
    texts += await page.read(TEXTS)
    await page.open(f"{live_site.url}/billing?from=checkout", width=320)
    texts += await page.read(TEXTS)
    assert len(texts) > 40
    faint = [one for one in texts if contrast(one[1], one[2]) < READABLE]
    assert faint == []
    assert await page.read("document.documentElement.scrollWidth") == 320


async def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    live_site: ServedSite, page: Page
) -> None:
    await page.open(f"{live_site.url}/login")
    reached = []
    for _ in range(8):
        for type_ in ("keyDown", "keyUp"):
            await page.call(
                "Input.dispatchKeyEvent", type=type_, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        reached.append(
            await page.read(
                "[document.activeElement.id || document.activeElement.textContent,"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
        )
    assert reached == [
        ["Skip to the content", "solid"],
        ["tolsey", "solid"],
        ["email", "solid"],
        ["password", "solid"],
        ["Sign in", "solid"],
        ["Forgot your password?", "solid"],
        ["Deleted your account?", "solid"],
        ["Create an account", "solid"],
    ]
