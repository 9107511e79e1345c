import asyncio
from datetime import timedelta

from tests.http.payments.shop import Shop
from tests.http.people import PASSWORD, Person, add_member


async def test_an_upgrade_is_paid_at_once_and_tops_the_credits_up(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    await shop.advance(days=10)
    answer = await shop.change(ann, "max_5x")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "organizationId": ann.organization_id,
        "change": "upgrade",
        "plan": "max_5x",
        "cadence": "monthly",
        "effectiveAt": answer.json()["effectiveAt"],
    }
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]) == ("max_5x", None)
    first, upgrade = shop.charged()
    assert first == 7_900
    assert 19_900 - 7_900 < upgrade < 19_900  # a whole new period, less what was not used
    (act,) = await shop.audited("plan.change_requested")
    assert act["actor"] == ann.user_id


async def test_an_upgrade_that_is_asked_for_twice_at_once_is_paid_once(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    answers = await asyncio.gather(*(shop.change(ann, "max_5x") for _ in range(3)))
    assert {one.status_code for one in answers} == {200}
    await shop.settled()
    assert len(shop.charged()) == 2
    assert (await shop.credits(ann))["available"] == 149_000_000


async def test_an_upgrade_that_was_not_told_yet_is_not_paid_again(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    shop.market.processor.webhooks.pause()
    for _ in range(2):
        assert (await shop.change(ann, "max_5x")).status_code == 200
    assert len(shop.charged()) == 2
    shop.market.processor.webhooks.resume()
    await shop.settled()
    unchanged = await shop.change(ann, "max_5x")
    assert (unchanged.status_code, unchanged.json()["code"]) == (409, "plan_unchanged")


async def test_a_refused_card_changes_nothing_and_another_card_is_tried_anew(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    refused = await shop.change(ann, "max_5x")
    assert (refused.status_code, refused.json()["code"]) == (402, "card_refused")
    assert "declined" in refused.json()["detail"]
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "pro"
    assert (await shop.credits(ann))["available"] == 49_000_000
    assert shop.charged() == [7_900]
    shop.market.processor.set_card(customer["id"], "ok")
    assert (await shop.change(ann, "max_5x")).status_code == 200
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_5x"
    assert len(shop.charged()) == 2
    assert len(await shop.audited("plan.change_refused")) == 1


async def test_a_card_that_wants_its_owner_changes_nothing(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "authenticate")
    refused = await shop.change(ann, "max_5x")
    assert (refused.status_code, refused.json()["code"]) == (402, "card_refused"), refused.text
    assert refused.json()["processorCode"] == "authentication_required"
    await shop.settled()
    assert ((await shop.plan(ann))["plan"], shop.charged()) == ("pro", [7_900])


async def test_after_any_refusal_the_next_attempt_has_a_key_of_its_own(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    shop.market.processor.faults.status(400, path="/v1/subscriptions/")
    refused = await shop.change(ann, "max_5x")
    assert (refused.status_code, refused.json()["code"]) == (422, "processor_rejected")
    assert (await shop.change(ann, "max_5x")).status_code == 200


async def test_a_refusal_is_repeated_under_its_key_and_tried_no_more(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    body = {"plan": "max_5x", "cadence": "monthly", "key": "k"}
    first = await shop.post(ann, "/payments/change", **body)
    shop.market.processor.set_card(customer["id"], "ok")
    again = await shop.post(ann, "/payments/change", **body)
    assert (first.status_code, again.status_code) == (402, 402)
    assert again.json()["code"] == "card_refused"
    assert shop.charged() == [7_900]


async def test_an_upgrade_whose_answer_was_lost_for_good_is_paid_once(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    shop.market.processor.webhooks.pause()
    shop.market.processor.faults.lose_answer(times=3, path="/v1/subscriptions/")
    for _ in range(2):
        assert (await shop.change(ann, "max_5x")).json()["change"] == "upgrade"
    shop.market.processor.webhooks.resume()
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_5x"
    assert len(shop.charged()) == 2


async def test_a_downgrade_waits_for_the_end_of_the_period_and_can_be_taken_back(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    for _ in range(2):  # taken back, and asked for again
        down = await shop.change(ann, "pro")
        before = await shop.plan(ann)
        assert (down.json()["change"], before["plan"]) == ("downgrade", "max_5x")
        assert down.json()["effectiveAt"] == before["periodEnd"]
        waits = {"plan": "pro", "cadence": "monthly", "at": before["periodEnd"]}
        assert before["nextChange"] == waits
        await shop.settled()
        assert (await shop.plan(ann))["nextChange"] == waits
        kept = await shop.change(ann, "max_5x")
        assert kept.json()["change"] == "kept"
        await shop.settled()
        assert (await shop.plan(ann))["nextChange"] is None
    await shop.change(ann, "pro")
    await shop.settled()
    await shop.advance(days=31)
    await sign_in(ann)
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]) == ("pro", None)
    assert shop.charged() == [19_900, 7_900]


async def test_tax_is_worked_out_after_a_downgrade_too(shop: Shop, ann: Person) -> None:
    await shop.buy(ann, "max_5x")
    await shop.change(ann, "pro")
    (schedule,) = shop.market.made("subscription_schedule")
    assert [one["automatic_tax"]["enabled"] for one in schedule["phases"]] == [True, True]
    await shop.advance(days=31)
    assert [one["automatic_tax"]["enabled"] for one in shop.market.made("invoice")] == [True, True]


async def test_a_downgrade_that_was_not_told_yet_keeps_the_upgrade_before_it(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    await shop.change(ann, "max_20x")
    await shop.settled()
    shop.market.processor.webhooks.pause()
    await shop.change(ann, "max_5x")
    (subscription,) = shop.market.made("subscription")
    (item,) = subscription["items"]["data"]
    assert item["price"]["id"] == shop.market.price("max_20x")
    shop.market.processor.webhooks.resume()
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_20x"


async def test_a_downgrade_begins_anew_when_the_one_before_was_taken_off_at_the_processor(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_20x")
    await shop.change(ann, "max_5x")
    await shop.settled()
    (schedule,) = shop.market.made("subscription_schedule")
    shop.market.processor.webhooks.pause()
    await shop.market.client.v1.subscription_schedules.release_async(schedule["id"])
    changed = await shop.change(ann, "pro")
    assert changed.status_code == 200, changed.text
    shop.market.processor.webhooks.resume()
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "pro"


async def test_an_upgrade_takes_the_place_of_a_downgrade_that_waits(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    await shop.change(ann, "pro")
    await shop.settled()
    assert (await shop.change(ann, "max_20x")).json()["change"] == "upgrade"
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]) == ("max_20x", None)


async def test_a_downgrade_waits_again_when_the_upgrade_in_its_place_is_not_paid(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    await shop.change(ann, "pro")
    await shop.settled()
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    assert (await shop.change(ann, "max_20x")).status_code == 402
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]["plan"]) == ("max_5x", "pro")


async def test_a_subscription_ends_with_its_period_and_the_stores_stay(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    stores = [(await ann.store(name)).json()["id"] for name in ("One", "Two")]
    ending = await shop.post(ann, "/payments/cancel", feedback="too_expensive", comment="Bye.")
    before = await shop.plan(ann)
    assert ending.json()["endsAt"] == before["periodEnd"]
    await shop.settled()
    waiting = await shop.plan(ann)
    assert (waiting["plan"], waiting["cancelAtPeriodEnd"]) == ("pro", True)
    assert waiting["nextChange"] == {"plan": "free", "cadence": None, "at": before["periodEnd"]}
    (subscription,) = shop.market.made("subscription")
    assert subscription["cancellation_details"]["feedback"] == "too_expensive"
    again = await shop.post(ann, "/payments/cancel")
    assert again.json() == ending.json()
    await shop.advance(days=31)
    await sign_in(ann)
    after = await shop.plan(ann)
    assert (after["plan"], after["periodEnd"]) == ("free", None)
    listed = (await ann.browser.get("/api/stores")).json()["items"]
    assert {one["id"] for one in listed} == set(stores)
    assert (await ann.store("Three")).status_code == 402


async def test_an_end_is_taken_back_by_choosing_the_plan_again(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    for _ in range(2):
        await shop.post(ann, "/payments/cancel")
        await shop.settled()
        assert (await shop.plan(ann))["cancelAtPeriodEnd"]
        assert (await shop.change(ann, "pro")).json()["change"] == "kept"
        await shop.settled()
        assert not (await shop.plan(ann))["cancelAtPeriodEnd"]


async def test_a_change_of_what_is_to_end_lets_it_go_on(shop: Shop, ann: Person) -> None:
    await shop.buy(ann, "max_5x")
    await shop.post(ann, "/payments/cancel")
    await shop.settled()
    await shop.change(ann, "pro")
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["cancelAtPeriodEnd"], after["nextChange"]["plan"]) == (False, "pro")


async def test_a_cancellation_replaces_a_downgrade_that_waits(shop: Shop, ann: Person) -> None:
    await shop.buy(ann, "max_5x")
    await shop.change(ann, "pro")
    await shop.settled()
    assert (await shop.post(ann, "/payments/cancel")).status_code == 200
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "free"


async def test_without_a_subscription_there_is_nothing_to_change(shop: Shop, ann: Person) -> None:
    for path, body in (
        ("/payments/change", {"plan": "pro", "cadence": "monthly"}),
        ("/payments/cancel", {}),
    ):
        answer = await shop.post(ann, path, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "no_subscription")


async def test_what_is_owed_is_paid_before_more_is_bought(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    await shop.advance(days=31)
    await sign_in(ann)
    owing = await shop.plan(ann)
    assert (owing["plan"], owing["status"]) == ("pro", "past_due")
    url = owing["dunning"]["invoiceUrl"]
    refused = await shop.change(ann, "max_5x")
    assert (refused.status_code, refused.json()["code"]) == (409, "payment_due")
    assert refused.json()["invoiceUrl"] == url
    shop.market.processor.set_card(customer["id"], "ok")
    await shop.market.pay(url)
    await shop.settled()
    assert (await shop.plan(ann))["dunning"] is None


async def test_a_member_sees_the_plan_and_not_the_invoice(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    await add_member(shop.service.database, ann.organization_id, operator.email, "member")
    await shop.advance(days=31)
    for person in (ann, operator):
        await sign_in(person)
    query = {"organizationId": ann.organization_id}
    seen = (await operator.browser.get("/api/payments/subscription", params=query)).json()
    assert (seen["plan"], seen["dunning"]["invoiceUrl"]) == ("pro", None)
    assert (await shop.plan(ann))["dunning"]["invoiceUrl"]


async def test_strangers_see_no_subscription(shop: Shop, ann: Person, operator: Person) -> None:
    query = {"organizationId": ann.organization_id}
    answer = await operator.browser.get("/api/payments/subscription", params=query)
    assert answer.status_code == 404


async def test_a_year_is_shortened_at_its_end(shop: Shop, ann: Person) -> None:
    await shop.advance(days=31)
    await sign_in(ann)
    await shop.buy(ann, "pro", "yearly")
    down = await shop.change(ann, "max_5x", "monthly")
    assert down.json()["change"] == "downgrade"
    bought = shop.clock()
    assert down.json()["effectiveAt"] >= (bought + timedelta(days=364)).isoformat()
    up = await shop.change(ann, "max_20x", "yearly")
    assert up.json()["change"] == "upgrade"


async def sign_in(person: Person) -> None:
    """Sign in again: a session lives 30 days."""
    login = {"email": person.email, "password": PASSWORD}
    assert (await person.browser.post("/api/auth/login", json=login)).status_code == 200


async def test_a_month_s_credits_are_said_to_end_with_it_and_do_so_after_a_cancellation(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    assert (await shop.post(ann, "/payments/cancel")).status_code == 200
    await shop.settled()
    held, credits = await shop.plan(ann), await shop.credits(ann)
    assert credits["nextExpiry"] == credits["grants"][0]["expiresAt"] == held["periodEnd"]
    assert credits["available"] == 49_000_000
    await shop.advance(days=31)
    await sign_in(ann)
    assert ((await shop.plan(ann))["plan"], (await shop.credits(ann))["available"]) == ("free", 0)


async def test_an_upgrade_that_was_not_paid_on_the_portal_is_owed_for_a_day(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann)
    await shop.advance(days=2)
    visit = (await shop.post(ann, "/payments/portal")).json()["url"]
    ((subscription,), (customer,)) = shop.market.made("subscription"), shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    wanted = {"subscription": subscription["id"], "price": shop.market.price("max_5x")}
    await shop.market.browser.post(visit, data=wanted)
    await shop.settled()
    assert (await shop.plan(ann))["dunning"]["invoiceUrl"]
    shop.market.processor.set_card(customer["id"], "ok")
    assert (await shop.change(ann, "max_5x")).json()["code"] == "payment_due"
    await shop.advance(days=2)
    assert (await shop.plan(ann))["dunning"] is None
    page = await ann.browser.get("/billing", params={"organizationId": ann.organization_id})
    assert "invoice is unpaid" not in page.text
    changed = await shop.change(ann, "max_5x")
    assert changed.status_code == 200, changed.text
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_5x"
