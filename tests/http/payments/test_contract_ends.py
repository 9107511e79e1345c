"""A contract that is agreed while a page is open on which a plan is bought, and ends later."""

from tests.http.payments.shop import Shop
from tests.http.people import Person


async def test_a_plan_that_is_paid_under_a_contract_is_there_when_it_ends(
    shop: Shop, ann: Person, operator: Person
) -> None:
    page = await shop.post(ann, "/payments/checkout", plan="pro", cadence="monthly")
    terms = {"storesIncluded": 5, "monthlyAllowance": 1_000_000, "dailyBonus": 0}
    path = f"/api/admin/organizations/{ann.organization_id}/contract"
    agreed = await operator.browser.put(path, json={"plan": "custom", "reason": "signed", **terms})
    assert agreed.status_code == 200, agreed.text
    await shop.market.pay(page.json()["url"])
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "custom"
    ended = await operator.browser.put(path, json={"plan": "free", "reason": "they left"})
    assert (ended.status_code, ended.json()["plan"]) == (200, "pro")
    assert (await shop.plan(ann))["plan"] == "pro"
    assert (await shop.credits(ann))["available"] == 49_000_000
    changed = await shop.change(ann, "max_5x")
    assert changed.status_code == 200, changed.text
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_5x"
