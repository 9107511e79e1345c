"""What waits for the end of a period outlives every change that fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from tests.http.payments.shop import Shop
from tests.http.payments.test_changes import sign_in
from tests.http.people import Person
from tests.timing import until
from tolsey.actors.organization.billing.calls import AWAY, UpgradeSubscription
from tolsey.http import operations
from tolsey.runtime.messages import Patience
from tolsey.sandbox.payments.face.faults import Faults

SUBSCRIPTIONS = "/v1/subscriptions/"
SCHEDULES = "/v1/subscription_schedules"


@pytest.fixture
async def waiting(shop: Shop, ann: Person) -> Person:
    """Let Max 5x wait to become Pro."""
    await shop.buy(ann, "max_5x")
    assert (await shop.change(ann, "pro")).json()["change"] == "downgrade"
    await shop.settled()
    return ann


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an upgrade up that was not answered once."""
    monkeypatch.setattr(UpgradeSubscription, "patience", Patience((0.0,), 1, AWAY))


@contextmanager
def trouble(shop: Shop) -> Iterator[Faults]:
    """Let requests of ours fail: events wait, since whoever applies them may ask too."""
    shop.market.processor.webhooks.pause()
    yield shop.market.processor.faults
    shop.market.processor.faults.clear()
    shop.market.processor.webhooks.resume()


async def assert_waits(shop: Shop, who: Person, plan: str = "pro") -> None:
    await shop.settled()
    seen = await shop.plan(who)
    assert (seen["plan"], seen["nextChange"]["plan"]) == ("max_5x", plan)


async def assert_renews_as_pro(shop: Shop, who: Person) -> None:
    await assert_waits(shop, who)
    await shop.advance(days=32)
    await sign_in(who)
    assert (await shop.plan(who))["plan"] == "pro"
    assert shop.charged() == [19_900, 7_900]


async def test_an_end_stands_when_the_downgrade_instead_of_it_is_refused(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    await shop.post(ann, "/payments/cancel")
    await shop.settled()
    with trouble(shop) as faults:
        faults.status(400, path=SCHEDULES)
        refused = await shop.change(ann, "pro")
    assert (refused.status_code, refused.json()["code"]) == (422, "processor_rejected")
    await assert_waits(shop, ann, "free")
    for event in ("plan.change_requested", "plan.change_restored"):
        assert len(await shop.audited(event)) == 1, event
    await shop.advance(days=32)
    await sign_in(ann)
    assert (await shop.plan(ann))["plan"] == "free"
    assert shop.charged() == [19_900]


async def test_an_end_stands_when_the_downgrade_instead_of_it_is_half_made(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    await shop.post(ann, "/payments/cancel")
    await shop.settled()
    with trouble(shop) as faults:
        faults.status(400, path=f"{SCHEDULES}/")  # made, and not filled in
        assert (await shop.change(ann, "pro")).status_code == 422
    await assert_waits(shop, ann, "free")
    (subscription,) = shop.market.made("subscription")
    assert (subscription["cancel_at_period_end"], subscription["schedule"]) == (True, None)


async def test_a_downgrade_stands_when_a_cancellation_is_refused(
    shop: Shop, waiting: Person
) -> None:
    with trouble(shop) as faults:
        faults.status(400, path=SUBSCRIPTIONS)
        refused = await shop.post(waiting, "/payments/cancel")
    assert (refused.status_code, refused.json()["code"]) == (422, "processor_rejected")
    await assert_renews_as_pro(shop, waiting)


async def test_an_upgrade_that_is_answered_late_is_made_once(shop: Shop, waiting: Person) -> None:
    with trouble(shop) as faults:
        faults.status(500, times=3, path=SUBSCRIPTIONS)
        assert (await shop.change(waiting, "max_20x")).json()["change"] == "upgrade"
    await shop.settled()
    after = await shop.plan(waiting)
    assert (after["plan"], after["nextChange"]) == ("max_20x", None)
    assert len(shop.charged()) == 2


async def test_a_downgrade_stands_when_an_upgrade_is_not_answered(
    shop: Shop, waiting: Person, impatient: None
) -> None:
    with trouble(shop) as faults:
        faults.status(500, times=3, path=SUBSCRIPTIONS)
        away = await shop.change(waiting, "max_20x")
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    await assert_renews_as_pro(shop, waiting)


async def test_what_cannot_be_put_back_yet_is_said_and_put_back_when_the_processor_answers(
    shop: Shop, waiting: Person, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "WAIT_SECONDS", 0.0)
    with trouble(shop) as faults:
        faults.status(500, times=300, path=SUBSCRIPTIONS)
        begun = await shop.change(waiting, "max_20x")
        assert begun.status_code == 202, begun.text
        where = begun.headers["Location"]
        await given_up(shop)
        again = await shop.change(waiting, "max_20x")
        assert again.headers["Location"] == where
        for answer in (
            await shop.change(waiting, "max_5x"),
            await shop.post(waiting, "/payments/cancel"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (409, "change_in_progress")
    with anyio.fail_after(60):
        while (found := await operation(waiting, where))["state"] == "running":
            await anyio.sleep(0.05)
    assert (found["state"], found["error"]["code"]) == ("failed", "processor_unreachable")
    (act,) = await shop.audited("plan.change_restored")
    assert act["actor"] == "platform"
    monkeypatch.setattr(operations, "WAIT_SECONDS", 60.0)
    await assert_renews_as_pro(shop, waiting)


async def test_an_upgrade_whose_answer_was_lost_is_not_followed_by_the_downgrade(
    shop: Shop, waiting: Person, impatient: None
) -> None:
    with trouble(shop) as faults:
        faults.lose_answer(times=3, path=SUBSCRIPTIONS)
        assert (await shop.change(waiting, "max_20x")).status_code == 502
    await shop.settled()
    after = await shop.plan(waiting)
    assert (after["plan"], after["nextChange"]) == ("max_20x", None)
    assert await shop.audited("plan.change_restored") == []


async def test_what_the_processor_will_not_put_back_is_left_to_a_person(
    shop: Shop, waiting: Person, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "WAIT_SECONDS", 0.0)
    with trouble(shop) as faults:
        faults.status(500, times=300, path=SUBSCRIPTIONS)
        where = (await shop.change(waiting, "max_20x")).headers["Location"]
        await given_up(shop)
        faults.clear()
        faults.status(400, path=SCHEDULES)

        async def is_done() -> bool:
            return bool((await operation(waiting, where))["state"] != "running")

        await until(is_done)
    (act,) = await shop.audited("plan.change_lost")
    assert '"plan": "pro"' in act["metadata"]
    assert await shop.audited("plan.change_restored") == []


async def test_the_page_says_what_became_of_a_change_that_took_longer_than_an_answer_waits(
    shop: Shop, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.buy(ann)
    monkeypatch.setattr(operations, "WAIT_SECONDS", 0.0)
    for card, said in (("decline", "declined"), ("ok", "Done.")):
        (customer,) = shop.market.made("customer")
        shop.market.processor.set_card(customer["id"], card)
        answer = shop.market.processor.faults.hold(path=SUBSCRIPTIONS)
        wanted = {"organizationId": ann.organization_id, "plan": "max_5x", "cadence": "monthly"}
        sent = await ann.browser.post("/billing/change", data=wanted)
        assert sent.status_code == 303, sent.text
        page = await ann.browser.get(sent.headers["location"])
        assert "takes longer than usual" in page.text
        assert 'http-equiv="refresh"' in page.text
        answer.set()
        with anyio.fail_after(60):
            while "takes longer than usual" in page.text:
                await anyio.sleep(0.05)
                page = await ann.browser.get(sent.headers["location"])
        assert said in page.text
        assert 'http-equiv="refresh"' not in page.text


async def given_up(shop: Shop) -> None:
    """Wait until a change is given up, and what waited is to be put back."""
    await until(
        lambda: shop.service.database.fetch("SELECT FROM outbox WHERE name LIKE '%RestoreChange'")
    )


async def operation(who: Person, where: str) -> Any:
    return (await who.browser.get(where)).json()["operation"]


async def test_an_upgrade_of_what_was_to_end_lets_it_go_on_in_one_request(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "pro")
    await shop.post(ann, "/payments/cancel")
    await shop.settled()
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    assert (await shop.change(ann, "max_5x")).status_code == 402
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "free"
    shop.market.processor.set_card(customer["id"], "ok")
    assert (await shop.change(ann, "max_5x")).status_code == 200
    await shop.settled()
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]) == ("max_5x", None)


async def test_a_downgrade_of_the_portal_is_the_next_change_and_is_put_back_like_ours(
    shop: Shop, ann: Person
) -> None:
    await shop.buy(ann, "max_5x")
    await choose_in_portal(shop, ann, "pro")
    seen = await shop.plan(ann)
    waits = {"plan": "pro", "cadence": "monthly", "at": seen["periodEnd"]}
    assert seen["nextChange"] == waits
    (customer,) = shop.market.made("customer")
    shop.market.processor.set_card(customer["id"], "decline")
    assert (await shop.change(ann, "max_20x")).status_code == 402
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"] == waits
    shop.market.processor.set_card(customer["id"], "ok")
    await assert_renews_as_pro(shop, ann)


async def test_a_downgrade_of_the_portal_can_be_taken_back_here(shop: Shop, ann: Person) -> None:
    await shop.buy(ann, "max_20x")
    await choose_in_portal(shop, ann, "pro")
    assert (await shop.change(ann, "max_5x")).json()["change"] == "downgrade"
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "max_5x"
    assert (await shop.change(ann, "max_20x")).json()["change"] == "kept"
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"] is None


async def choose_in_portal(shop: Shop, who: Person, plan: str) -> None:
    url = (await shop.post(who, "/payments/portal")).json()["url"]
    (subscription,) = shop.market.made("subscription")
    chosen: dict[str, Any] = {
        "subscription": subscription["id"],
        "price": shop.market.price(plan),
    }
    assert (await shop.market.browser.post(url, data=chosen)).status_code in {200, 303}
    await shop.settled()
