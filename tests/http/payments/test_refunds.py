import asyncio
import json
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest

from tests.http.payments.shop import Shop
from tests.http.payments.test_changes import sign_in
from tests.http.people import Person
from tests.timing import until
from tolsey.actors.organization.billing.calls import AWAY, EndSubscriptionNow, RefundPayment
from tolsey.actors.organization.ledger.messages import HoldCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import PaymentRequired
from tolsey.http import operations
from tolsey.runtime.messages import Patience
from tolsey.storage.chat import generations
from tolsey.storage.records.chat import Generation

PATH = "/api/admin/refunds"


async def purchase(shop: Shop, who: Person, cents: int = 5_000) -> str:
    body = {"amount": {"amount": cents, "currency": "USD"}}
    page = await shop.post(who, "/credits/purchase", **body)
    await shop.market.pay(page.json()["url"])
    await shop.settled()
    return str(shop.market.made("payment_intent")[-1]["id"])


async def reference(shop: Shop, who: Person) -> str:
    """Name the payment of the newest credits."""
    found = (await shop.credits(who))["grants"]
    return str(max(found, key=lambda grant: grant["grantedAt"])["reference"])


async def refund(operator: Person, of: Person, payment: str, **more: Any) -> httpx.Response:
    body = {"organizationId": of.organization_id, "paymentRef": payment, "reason": "a mistake"}
    return await operator.browser.post(PATH, json={**body, **more})


async def test_a_purchase_goes_back_within_a_day_when_none_of_it_was_used(
    shop: Shop, ann: Person, operator: Person
) -> None:
    shop.market.processor.platform.tax_basis_points = 2_000
    payment = await purchase(shop, ann)
    await shop.advance(hours=23)
    answer = await refund(operator, ann, payment)
    assert answer.status_code == 201, answer.text
    (made,) = shop.market.made("refund")
    assert answer.json() == {
        "id": made["id"],
        "organizationId": ann.organization_id,
        "paymentRef": payment,
        "subscriptionEnded": None,
    }
    assert made["amount"] == 6_000
    await shop.settled()
    assert (await shop.credits(ann))["balance"] == 0
    (act,) = await shop.audited("refund.requested")
    assert act["actor"] == operator.user_id
    assert "a mistake" in act["metadata"]
    again = await refund(operator, ann, payment)
    assert (again.status_code, again.json()["code"]) == (409, "already_refunded")
    assert len(shop.market.made("refund")) == 1


async def test_a_refund_that_was_not_told_yet_is_not_made_again(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    shop.market.processor.webhooks.pause()
    answers = await asyncio.gather(*(refund(operator, ann, payment) for _ in range(3)))
    assert {one.status_code for one in answers} <= {201, 409}
    assert len({one.text for one in answers if one.status_code == 201}) == 1
    again = await refund(operator, ann, payment)
    assert (again.status_code, again.json()["code"]) == (409, "already_refunded")
    assert len(shop.market.made("refund")) == 1
    assert (await shop.credits(ann))["balance"] == 0


async def test_a_purchase_is_too_old_after_a_day(shop: Shop, ann: Person, operator: Person) -> None:
    payment = await purchase(shop, ann)
    await shop.advance(hours=24)
    answer = await refund(operator, ann, payment)
    assert (answer.status_code, answer.json()["code"]) == (409, "refund_too_late")
    assert shop.market.made("refund") == []


async def test_credits_that_were_used_or_are_held_do_not_go_back(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    ask, to, at = shop.service.runtime.ask, organization(ann.organization_id), shop.clock()
    await ask(to, HoldCredits(hold_id="h", amount=1, at=at, lease_until=at + timedelta(hours=1)))
    held = await refund(operator, ann, payment)
    assert (held.status_code, held.json()["code"]) == (409, "refund_credits_used")
    second = await purchase(shop, ann, 1_000)
    assert (await refund(operator, ann, second)).status_code == 201
    await ask(to, SpendCredits(key="s", amount=1, reason="chat", at=at))
    used = await refund(operator, ann, payment)
    assert used.json()["code"] == "refund_credits_used"


async def test_a_disputed_purchase_does_not_go_back_twice(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    (charge,) = shop.market.made("charge")
    shop.market.processor.open_dispute(charge["id"])
    await shop.settled()
    answer = await refund(operator, ann, payment)
    assert (answer.status_code, answer.json()["code"]) == (409, "payment_disputed")
    assert shop.market.made("refund") == []


async def test_a_subscription_goes_back_within_a_week_and_ends(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    await shop.advance(days=6)
    answer = await refund(operator, ann, await reference(shop, ann))
    assert answer.status_code == 201, answer.text
    (subscription,) = shop.market.made("subscription")
    assert answer.json()["subscriptionEnded"] == subscription["id"]
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"
    assert (await shop.credits(ann))["balance"] == 0
    assert [one["amount"] for one in shop.market.made("refund")] == [7_900]


async def test_a_subscription_is_too_old_after_a_week(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    await shop.advance(days=7, seconds=1)
    answer = await refund(operator, ann, await reference(shop, ann))
    assert (answer.status_code, answer.json()["code"]) == (409, "refund_too_late")
    assert (await shop.plan(ann))["plan"] == "pro"


async def test_a_subscription_with_a_message_sent_does_not_go_back(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    sent = Generation(
        id="gen_1",
        organization_id=ann.organization_id,
        store_id="store_1",
        user_id=ann.user_id,
        claim="once",
        model="m",
        created_at=shop.clock() + timedelta(seconds=1),
    )
    assert await generations.begin(shop.service.database, sent)
    answer = await refund(operator, ann, await reference(shop, ann))
    assert (answer.status_code, answer.json()["code"]) == (409, "refund_messages_sent")
    assert shop.market.made("refund") == []


async def test_only_the_newest_payment_of_a_subscription_goes_back(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    first = await reference(shop, ann)
    await shop.advance(days=31)
    for person in (ann, operator):
        await sign_in(person)
    renewed = await reference(shop, ann)
    assert renewed != first
    answer = await refund(operator, ann, first)
    assert (answer.status_code, answer.json()["code"]) == (409, "refund_not_newest")
    assert (await refund(operator, ann, renewed)).status_code == 201


async def test_a_plan_ends_after_its_refund_although_its_end_failed_at_first(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    payment = await reference(shop, ann)
    shop.market.processor.faults.status(503, times=3, path="/v1/subscriptions/")
    answer = await refund(operator, ann, payment)
    assert answer.status_code == 201, answer.text
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"
    assert len(shop.market.made("refund")) == 1


async def test_a_plan_whose_end_takes_longer_than_an_answer_waits_ends_without_a_person(
    shop: Shop, ann: Person, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.buy(ann)
    payment = await reference(shop, ann)
    monkeypatch.setattr(operations, "WAIT_SECONDS", 0.05)
    shop.market.processor.faults.status(503, times=6, path="/v1/subscriptions/")
    operator.browser.headers["Idempotency-Key"] = "a-slow-one"
    answer, repeated = [await refund(operator, ann, payment) for _ in range(2)]
    del operator.browser.headers["Idempotency-Key"]
    assert answer.status_code == 202, answer.text
    reported, where = answer.json()["operation"], answer.headers["Location"]
    assert repeated.headers["Idempotent-Replayed"] == "true"
    assert (repeated.status_code, repeated.headers["Location"]) == (202, where)
    assert (reported["kind"], reported["state"], reported["finishedAt"]) == (
        "refund",
        "running",
        None,
    )
    assert where == f"/api/operations/{reported['id']}"
    for _ in range(2):  # whoever asks again waits with the first
        again = await refund(operator, ann, payment)
        assert again.json().get("operation", reported)["id"] == reported["id"]
    with anyio.fail_after(60):
        while (found := (await operator.browser.get(where)).json()["operation"])["state"] != "done":
            await anyio.sleep(0.05)
    (subscription,) = shop.market.made("subscription")
    assert found["result"]["subscriptionEnded"] == subscription["id"]
    assert (await ann.browser.get(where)).status_code == 404
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"
    assert len(shop.market.made("refund")) == 1


async def test_only_operators_refund_and_only_what_the_organization_paid(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    assert (await refund(ann, ann, payment)).status_code == 403
    assert (await refund(operator, operator, payment)).status_code == 404
    assert (await refund(operator, ann, "pi_nobodys")).status_code == 404
    assert (await refund(operator, ann, "re_1")).status_code == 422
    assert (await refund(operator, ann, payment, reason=" ")).status_code == 422
    assert (await refund(operator, ann, payment, amount=1)).status_code == 422
    assert shop.market.made("refund") == []
    ann.browser.cookies.clear()
    assert (await refund(ann, ann, payment)).status_code == 401


async def test_refunded_credits_are_gone_before_any_event_tells_of_it(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    shop.market.processor.webhooks.pause()
    assert (await refund(operator, ann, payment)).status_code == 201
    assert (await shop.credits(ann))["available"] == 0
    with pytest.raises(PaymentRequired):
        await spend(shop, ann, 50)
    books = await ledger(shop, ann)
    shop.market.processor.webhooks.resume()
    await shop.settled()
    assert (await shop.credits(ann))["balance"] == 0
    assert await ledger(shop, ann) == books
    assert len(await shop.audited("clawback.applied")) == 1


async def test_credits_cannot_be_spent_while_their_refund_is_on_its_way(
    shop: Shop, ann: Person, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, payment = await purchase(shop, ann, 1_000), await purchase(shop, ann)
    shop.market.processor.webhooks.pause()
    shop.market.processor.faults.lose_answer(times=3, path="/v1/refunds")
    with monkeypatch.context() as patched:
        patched.setattr(operations, "WAIT_SECONDS", 0.0)
        under_way = await refund(operator, ann, payment)
    assert under_way.status_code == 202
    with pytest.raises(PaymentRequired):
        await spend(shop, ann, 11)
    await spend(shop, ann, 10)  # what another payment bought
    assert (await refund(operator, ann, other)).json()["code"] == "refund_credits_used"
    assert (await refund(operator, ann, payment)).status_code == 201
    shop.market.processor.webhooks.resume()
    await shop.settled()
    after = await shop.credits(ann)
    assert (after["balance"], after["held"]) == (0, 0)
    (taken,) = await shop.audited("clawback.applied")
    assert json.loads(taken["metadata"])["debt"] == 0
    again = await refund(operator, ann, payment)
    assert (again.status_code, again.json()["code"]) == (409, "already_refunded")
    assert len(shop.market.made("refund")) == 1


async def test_a_refund_that_the_processor_refuses_leaves_the_credits(
    shop: Shop, ann: Person, operator: Person
) -> None:
    payment = await purchase(shop, ann)
    shop.market.processor.faults.status(400, path="/v1/refunds")
    refused = await refund(operator, ann, payment)
    assert (refused.status_code, refused.json()["code"]) == (422, "processor_rejected")
    after = await shop.credits(ann)
    assert (after["available"], after["held"]) == (50_000_000, 0)
    await shop.advance(hours=24)
    late = await refund(operator, ann, payment)
    assert (late.status_code, late.json()["code"]) == (409, "refund_too_late")


async def test_credits_are_free_again_when_a_refund_was_never_answered(
    shop: Shop, ann: Person, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = await purchase(shop, ann)
    monkeypatch.setattr(RefundPayment, "patience", Patience((0.0,), 2, AWAY))
    shop.market.processor.faults.status(500, times=6, path="/v1/refunds")
    away = await refund(operator, ann, payment)
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    assert (await shop.credits(ann))["available"] == 50_000_000
    await shop.advance(days=1)  # it was decided in time, and nothing of it is used
    await sign_in(operator)
    assert (await refund(operator, ann, payment)).status_code == 201
    assert (await shop.credits(ann))["balance"] == 0


async def test_a_subscription_returned_elsewhere_ends_with_the_operators_reason(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    payment = await reference(shop, ann)
    (charge,) = shop.market.made("charge")
    await shop.market.client.v1.refunds.create_async({"payment_intent": charge["payment_intent"]})
    await shop.settled()
    await shop.advance(days=20)
    for person in (ann, operator):
        await sign_in(person)
    answer = await refund(operator, ann, payment)
    assert answer.status_code == 201, answer.text
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"
    (act,) = await shop.audited("refund.requested")
    said = json.loads(act["metadata"])
    assert act["actor"] == operator.user_id
    assert (said["reason"], said["elsewhere"]) == ("a mistake", True)
    assert said["subscription"] == answer.json()["subscriptionEnded"]
    assert len(shop.market.made("refund")) == 1


async def test_an_end_that_was_given_up_is_gone_on_with_by_an_operator(
    shop: Shop, ann: Person, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.buy(ann)
    payment = await reference(shop, ann)
    monkeypatch.setattr(EndSubscriptionNow, "patience", Patience((0.0,), 1, AWAY))
    shop.market.processor.faults.status(503, times=3, path="/v1/subscriptions/")
    away = await refund(operator, ann, payment)
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    assert "dead letters" in away.json()["detail"]
    await shop.settled()
    assert (await shop.credits(ann))["balance"] == 0
    (dead,) = (await operator.browser.get("/api/admin/dead-letters")).json()["items"]
    assert dead["message"] == "EndSubscriptionNow"
    act = f"/api/admin/dead-letters/{dead['id']}/replay"
    assert (await operator.browser.post(act, json={"reason": "it is back"})).status_code == 200

    async def is_done() -> bool:
        return not await shop.service.database.fetch("SELECT FROM outbox")

    await until(is_done)
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "free"


async def spend(shop: Shop, who: Person, dollars: int) -> None:
    message = SpendCredits(
        key=f"spend:{dollars}", amount=dollars * 1_000_000, reason="chat", at=shop.clock()
    )
    await shop.service.runtime.ask(organization(who.organization_id), message)


async def ledger(shop: Shop, who: Person) -> Any:
    query = {"organizationId": who.organization_id}
    return (await who.browser.get("/api/credits/ledger", params=query)).json()["items"]
