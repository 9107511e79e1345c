from typing import Any

import pytest

from tests.http.payments.shop import Shop
from tests.http.people import Person, add_member
from tolsey.http.web import policies


def usd(cents: Any, currency: str = "USD") -> dict[str, Any]:
    return {"amount": {"amount": cents, "currency": currency}}


async def test_credits_are_bought_for_what_they_cost_before_tax(shop: Shop, ann: Person) -> None:
    shop.market.processor.platform.tax_basis_points = 2_000
    page = await shop.post(ann, "/credits/purchase", **usd(5_000))
    paid = await shop.market.pay(page.json()["url"])
    back = f"/billing?organizationId={ann.organization_id}&from=credits&after=0"
    assert paid.headers["location"] == f"http://127.0.0.1:8000{back}"
    await shop.settled()
    assert shop.charged() == [6_000]
    found = await shop.credits(ann)
    assert found["available"] == 50_000_000
    (grant,) = found["grants"]
    assert (grant["kind"], grant["reference"][:3]) == ("purchase", "pi_")
    (act,) = await shop.audited("credits.purchase_started")
    assert act["metadata"] == '{"cents": 5000}'


async def test_nothing_is_granted_before_it_is_paid(shop: Shop, ann: Person) -> None:
    page = (await shop.post(ann, "/credits/purchase", **usd(5_000))).json()["url"]
    await shop.market.pay(page, "decline")
    await shop.settled()
    assert (await shop.credits(ann))["available"] == 0
    await shop.market.pay(page, "later")
    await shop.settled()
    assert (await shop.credits(ann))["available"] == 0
    intent = shop.market.made("payment_intent")[-1]["id"]
    shop.market.processor.settle(intent, paid=True)
    await shop.settled()
    assert (await shop.credits(ann))["available"] == 50_000_000


async def test_a_page_that_is_asked_for_twice_under_a_key_is_one_page(
    shop: Shop, ann: Person
) -> None:
    pages = [await shop.post(ann, "/credits/purchase", **usd(500), key="k") for _ in range(2)]
    assert pages[0].json() == pages[1].json()
    assert len(shop.market.made("checkout.session")) == 1


@pytest.mark.parametrize("cents", [-500, 0, 499, 500_001])
async def test_credits_are_sold_for_5_to_5000_dollars(shop: Shop, ann: Person, cents: int) -> None:
    answer = await shop.post(ann, "/credits/purchase", **usd(cents))
    assert (answer.status_code, answer.json()["code"]) == (422, "amount_out_of_range")
    assert answer.json()["minimum"] == {"amount": 500, "currency": "USD"}
    assert answer.json()["maximum"] == {"amount": 500_000, "currency": "USD"}
    assert shop.market.made("checkout.session") == []


@pytest.mark.parametrize("cents", [500, 500_000])
async def test_the_least_and_the_most_can_be_bought(shop: Shop, ann: Person, cents: int) -> None:
    assert (await shop.post(ann, "/credits/purchase", **usd(cents))).status_code == 200


@pytest.mark.parametrize(
    "body", [usd(5.5), usd("500"), usd(500, "EUR"), {"amount": 500}, {**usd(500), "credits": 10**9}]
)
async def test_an_amount_is_whole_cents_of_dollars(
    shop: Shop, ann: Person, body: dict[str, Any]
) -> None:
    answer = await shop.post(ann, "/credits/purchase", **body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_an_organization_tries_ten_times_an_hour_whoever_of_it_tries(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await add_member(shop.service.database, ann.organization_id, operator.email, "admin")
    limit = policies.CREDIT_PURCHASE.limit
    for n in range(limit):
        asked = await shop.post(ann, "/credits/purchase", **usd(500))
        assert asked.headers["RateLimit"].startswith(f'"credit-purchase";r={limit - 1 - n};')
    body = {"organizationId": ann.organization_id, **usd(500)}
    refused = await operator.browser.post("/api/credits/purchase", json=body)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert len(shop.market.made("checkout.session")) == limit


@pytest.mark.parametrize("of_organization", [True, False])
async def test_a_sponsor_pays_and_is_granted_nothing(
    shop: Shop, ann: Person, of_organization: bool
) -> None:
    body = {"organizationId": ann.organization_id} if of_organization else {}
    page = await ann.browser.post("/api/sponsor/checkout", json=body)
    assert page.status_code == 200, page.text
    paid = await shop.market.pay(page.json()["url"])
    assert paid.headers["location"].endswith("from=sponsor")
    await shop.settled()
    assert shop.charged() == [50_000]
    assert (await shop.credits(ann))["available"] == 0
    assert (await shop.plan(ann))["plan"] == "free"
    (row,) = await shop.service.database.fetch(
        "SELECT organization_id, paid_cents FROM sponsorships"
    )
    assert tuple(row) == (body.get("organizationId"), 50_000)
    (act,) = await shop.audited("sponsor.started")
    assert act["actor"] == ann.user_id


async def test_nobody_sponsors_without_an_account(shop: Shop, ann: Person) -> None:
    ann.browser.cookies.clear()
    assert (await ann.browser.post("/api/sponsor/checkout", json={})).status_code == 401


async def test_a_busy_processors_refusal_is_no_answer_to_keep_for_a_day(
    shop: Shop, ann: Person
) -> None:
    shop.market.processor.faults.rate_limit(path="/v1/checkout", after=77)
    busy = await shop.post(ann, "/credits/purchase", key="once", **usd(5_000))
    assert (busy.status_code, busy.json()["code"]) == (429, "processor_busy")
    assert busy.headers["Retry-After"] == "77"
    again = await shop.post(ann, "/credits/purchase", key="once", **usd(5_000))
    assert again.status_code == 200, again.text
    assert len(shop.market.made("checkout.session")) == 1
