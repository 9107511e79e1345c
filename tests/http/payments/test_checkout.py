import asyncio
from typing import Any, cast

import httpx
import pytest

from tests.http.payments.market import Market
from tests.http.payments.shop import Shop, served
from tests.http.people import PASSWORD, Clock, Person, SignUp, add_member
from tolsey.http.web import policies

CHOICE = {"plan": "pro", "cadence": "monthly"}


async def test_a_plan_is_bought_on_the_processors_page(shop: Shop, ann: Person) -> None:
    before = await shop.plan(ann)
    assert (before["plan"], before["status"], before["nextChange"]) == ("free", None, None)
    page = await shop.post(ann, "/payments/checkout", **CHOICE)
    assert list(page.json()) == ["url"]
    paid = await shop.market.pay(page.json()["url"])
    (session,) = shop.market.made("checkout.session")
    back = f"/billing?organizationId={ann.organization_id}&from=checkout&session={session['id']}"
    assert paid.headers["location"] == f"http://127.0.0.1:8000{back}"
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["plan"], after["cadence"], after["status"]) == ("pro", "monthly", "active")
    assert after["dunning"] is None
    assert (await shop.credits(ann))["available"] == 49_000_000
    (act,) = await shop.audited("checkout.started")
    assert (act["actor"], act["organization_id"]) == (ann.user_id, ann.organization_id)


async def test_a_subscription_is_changed_and_not_bought_again(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    again = await shop.post(ann, "/payments/checkout", plan="max_5x", cadence="monthly")
    assert (again.status_code, again.json()["code"]) == (409, "subscription_exists")
    assert len(shop.market.made("checkout.session")) == 1


async def test_of_two_checkout_pages_only_the_last_can_be_paid(shop: Shop, ann: Person) -> None:
    first = (await shop.post(ann, "/payments/checkout", **CHOICE)).json()["url"]
    last = (await shop.post(ann, "/payments/checkout", plan="max_5x", cadence="monthly")).json()
    await shop.market.browser.post(first, data={"action": "pay", "terms": "yes"})
    assert shop.charged() == []
    await shop.market.pay(last["url"])
    await shop.settled()
    assert shop.charged() == [19_900]
    assert (await shop.plan(ann))["plan"] == "max_5x"


async def test_of_checkout_pages_that_are_opened_at_once_one_stays_open(
    shop: Shop, ann: Person
) -> None:
    await asyncio.gather(
        *(
            shop.post(ann, "/payments/checkout", plan=plan, cadence="monthly")
            for plan in ("pro", "max_5x", "max_20x")
        )
    )
    states = [one["status"] for one in shop.market.made("checkout.session")]
    assert sorted(states) == ["expired", "expired", "open"]


async def test_a_page_that_the_processor_does_not_know_closes_no_one_out(
    shop: Shop, ann: Person
) -> None:
    await shop.service.database.execute(
        "INSERT INTO plan_checkouts VALUES ($1, 'cs_test_of_another_account', now())",
        ann.organization_id,
    )
    await shop.buy(ann)


async def test_a_plan_by_contract_is_not_bought(shop: Shop, ann: Person, operator: Person) -> None:
    terms = {
        "plan": "custom",
        "storesIncluded": 9,
        "monthlyAllowance": 0,
        "dailyBonus": 0,
        "reason": "signed",
    }
    path = f"/api/admin/organizations/{ann.organization_id}/contract"
    answer = await operator.browser.put(path, json=terms)
    assert answer.status_code == 200, answer.text
    refused = await shop.post(ann, "/payments/checkout", **CHOICE)
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_by_contract")


async def test_a_checkout_that_was_paid_and_not_told_yet_is_not_paid_again(
    shop: Shop, ann: Person
) -> None:
    shop.market.processor.webhooks.pause()
    page = (await shop.post(ann, "/payments/checkout", **CHOICE)).json()["url"]
    await shop.market.pay(page)
    again = await shop.post(ann, "/payments/checkout", plan="max_5x", cadence="monthly")
    assert (again.status_code, again.json()["code"]) == (409, "subscription_exists")
    assert [one["status"] for one in shop.market.made("checkout.session")] == [
        "complete",
        "expired",
    ]


async def test_who_had_a_subscription_buys_another_as_the_same_customer(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    (first,) = shop.market.made("subscription")
    await shop.service.payments.end_now(first["id"], key="end")
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"
    await shop.advance(seconds=5)
    await shop.buy(ann, "max_5x")
    assert shop.market.made("customer") == [customer]


async def test_a_year_is_paid_only_by_an_organization_older_than_30_days(
    shop: Shop, ann: Person
) -> None:
    early = await shop.post(ann, "/payments/checkout", plan="pro", cadence="yearly")
    assert (early.status_code, early.json()["code"]) == (403, "yearly_not_open")
    assert early.json()["yearlyFrom"] == (await shop.plan(ann))["yearlyFrom"]
    await shop.advance(days=30, seconds=1)
    login = {"email": ann.email, "password": PASSWORD}
    assert (await ann.browser.post("/api/auth/login", json=login)).status_code == 200
    await shop.buy(ann, "pro", "yearly")
    assert shop.charged() == [75_000]


@pytest.mark.parametrize(
    ("choice", "status", "code"),
    [
        ({"plan": "gold", "cadence": "monthly"}, 422, "unknown_plan"),
        ({"plan": "free", "cadence": "monthly"}, 422, "plan_not_sold"),
        ({"plan": "custom", "cadence": "monthly"}, 422, "plan_by_contract"),
        ({"plan": "pro", "cadence": "quarterly"}, 422, "unknown_cadence"),
        ({"plan": "pro"}, 422, "invalid_request"),
        ({**CHOICE, "price": "price_of_mine"}, 422, "invalid_request"),
    ],
)
async def test_only_what_is_sold_can_be_bought(
    shop: Shop, ann: Person, choice: dict[str, Any], status: int, code: str
) -> None:
    answer = await shop.post(ann, "/payments/checkout", **choice)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert shop.market.made("checkout.session") == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/payments/checkout", CHOICE),
        ("/payments/change", CHOICE),
        ("/payments/cancel", {}),
        ("/payments/portal", {}),
        ("/credits/purchase", {"amount": {"amount": 500, "currency": "USD"}}),
        ("/sponsor/checkout", {}),
    ],
)
async def test_nobody_pays_for_an_organization_of_others(
    shop: Shop, ann: Person, sign_up: SignUp, path: str, body: dict[str, Any]
) -> None:
    bob = await sign_up("bob@example.com")
    body = {"organizationId": ann.organization_id, **body}
    foreign = await bob.browser.post(f"/api{path}", json=body)
    assert foreign.status_code == 404
    absent = await bob.browser.post(f"/api{path}", json={**body, "organizationId": "org_0"})
    assert absent.json()["detail"] == foreign.json()["detail"]
    await add_member(shop.service.database, ann.organization_id, bob.email, "member")
    answer = await bob.browser.post(f"/api{path}", json=body)
    if path == "/sponsor/checkout":
        assert answer.status_code == 200  # a member may give
    else:
        assert (answer.status_code, answer.json()["required"]) == (403, "admin")
        assert shop.market.made("checkout.session") == []


async def test_a_repeat_under_its_key_opens_one_page(shop: Shop, ann: Person) -> None:
    first = await shop.post(ann, "/payments/checkout", **CHOICE, key="k")
    again = await shop.post(ann, "/payments/checkout", **CHOICE, key="k")
    assert first.json() == again.json()
    other = await shop.post(ann, "/payments/checkout", plan="max_5x", cadence="monthly", key="k")
    assert other.json()["code"] == "idempotency_key_reused"
    assert len(shop.market.made("checkout.session")) == 1
    await shop.service.database.execute(
        "UPDATE idempotency_keys SET answer = NULL, locked_until = NULL"
    )
    lost = await shop.post(ann, "/payments/checkout", **CHOICE, key="k")
    assert lost.json() == first.json()
    assert len(shop.market.made("checkout.session")) == 1


async def test_a_processor_out_of_reach_is_said_and_the_repeat_succeeds(
    shop: Shop, ann: Person
) -> None:
    shop.market.processor.faults.status(503, times=3, path="/v1/checkout")
    away = await shop.post(ann, "/payments/checkout", **CHOICE, key="k")
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    again = await shop.post(ann, "/payments/checkout", **CHOICE, key="k")
    assert again.status_code == 200


@pytest.mark.parametrize(
    "lacking", [{"payments_secret_key": None}, {"payments_price_pro_monthly": ()}]
)
async def test_a_missing_key_or_price_is_named(
    market: Market, clock: Clock, database_url: str, redis_url: str, lacking: dict[str, Any]
) -> None:
    (variable,) = lacking
    async with served(market, clock, database_url, redis_url, **lacking) as shop:
        base = "http://127.0.0.1:8000"
        transport = httpx.ASGITransport(cast("Any", shop.running.app))
        headers = {"Origin": base}
        async with httpx.AsyncClient(
            transport=transport, base_url=base, headers=headers
        ) as browser:
            body = {"email": "a@example.com", "password": PASSWORD, "organizationName": "A"}
            made = (await browser.post("/api/auth/signup", json=body)).json()
            whose = {"organizationId": made["organization"]["id"]}
            answer = await browser.post("/api/payments/checkout", json={**whose, **CHOICE})
        assert (answer.status_code, answer.json()["code"]) == (503, "missing_credential")
        assert answer.json()["variable"] == variable.upper()
        assert await shop.audited("checkout.started") == []


async def test_the_portal_is_for_who_has_bought_a_plan(shop: Shop, ann: Person) -> None:
    early = await shop.post(ann, "/payments/portal")
    bought = await shop.post(ann, "/credits/purchase", amount={"amount": 500, "currency": "USD"})
    await shop.market.pay(bought.json()["url"])
    await shop.settled()
    credited = await shop.post(ann, "/payments/portal")
    for answer in (early, credited):
        assert (answer.status_code, answer.json()["code"]) == (409, "no_customer")
        assert (
            answer.json()["detail"]
            == "The billing portal is available once you have a subscription. Choose a plan first."
        )
    await shop.buy(ann)
    posted = await shop.post(ann, "/payments/portal")
    query = {"organizationId": ann.organization_id}
    got = await ann.browser.get("/api/payments/portal", params=query)
    for answer in (posted, got):
        page = await shop.market.browser.get(answer.json()["url"])
        assert "Change to Max 5x monthly" in page.text
        assert "yearly" not in page.text
    assert len(await shop.audited("portal.opened")) == 2
    await shop.advance(days=30, seconds=1)
    login = {"email": ann.email, "password": PASSWORD}
    assert (await ann.browser.post("/api/auth/login", json=login)).status_code == 200
    later = await shop.post(ann, "/payments/portal")
    page = await shop.market.browser.get(later.json()["url"])
    assert "Change to Pro yearly" in page.text


async def test_too_many_checkouts_are_refused(shop: Shop, ann: Person) -> None:
    for _ in range(policies.BILLING.limit):
        await shop.service.limits.admit((policies.BILLING,), f"user:{ann.user_id}")
    answer = await shop.post(ann, "/payments/checkout", **CHOICE)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
    assert shop.market.made("checkout.session") == []
