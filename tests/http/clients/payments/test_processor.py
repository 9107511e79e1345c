from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.http.payments.market import Market, opened
from tolsey.actors.processor import (
    Addresses,
    Buyer,
    CardRefused,
    ProcessorRefused,
    Refunded,
    Subscribed,
)
from tolsey.actors.refusals import MissingCredential
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.sandbox.payments.processor import SECRET_KEY

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TO = Addresses("https://ours.test/billing?from=checkout", "https://ours.test/billing")
ORG = Buyer("org_1")


@pytest.fixture
async def market() -> AsyncIterator[Market]:
    async with opened(NOW) as market:
        yield market


async def bought(market: Market, plan: str = "pro", cadence: str = "monthly") -> Subscribed:
    price = market.price(plan, cadence)
    page = await market.payments.subscription_checkout(ORG, price, plan, cadence, TO, key="buy")
    await market.pay(page.url)
    return await held(market)


async def held(market: Market) -> Subscribed:
    (made,) = market.made("subscription")
    facts = await market.payments.subscription(made["id"])
    (item,) = facts.items
    return Subscribed(
        subscription_id=facts.subscription_id,
        item_id=item.item_id,
        price_id=item.price_id,
        period_start=item.period_start,
        period_end=item.period_end,
        schedule_id=facts.schedule_id,
    )


async def test_a_plan_is_bought_with_everything_the_service_sends(market: Market) -> None:
    await bought(market)
    (session,) = market.made("checkout.session")
    assert session["metadata"] == {
        "org_id": "org_1",
        "plan": "pro",
        "kind": "subscription",
        "cadence": "monthly",
    }
    assert session["tax_id_collection"]["enabled"]
    assert session["automatic_tax"]["enabled"]
    assert session["consent_collection"]["terms_of_service"] == "required"
    assert session["customer_creation"] is None
    (subscription,) = market.made("subscription")
    assert subscription["metadata"] == {"org_id": "org_1", "plan": "pro"}
    facts = await market.payments.subscription(subscription["id"])
    assert (facts.status, facts.said.organization_id) == ("active", "org_1")
    assert facts.has_all_items


async def test_a_known_customer_keeps_its_name_and_address_with_the_checkout(
    market: Market,
) -> None:
    customer = await market.client.v1.customers.create_async({"name": "Ann"})
    price = market.price("pro")
    page = await market.payments.subscription_checkout(
        Buyer("org_1", customer.id), price, "pro", "monthly", TO, key="k"
    )
    await market.pay(page.url, name="Ann Ltd")
    (known,) = market.made("customer")
    assert (known["id"], known["name"]) == (customer.id, "Ann Ltd")


async def test_credits_are_bought_before_tax_and_always_as_a_new_customer(market: Market) -> None:
    market.processor.platform.tax_basis_points = 2_000
    page = await market.payments.credits_checkout(ORG, 5_000, TO, key="k")
    await market.pay(page.url)
    session = await market.session(page.id)
    assert (session.amount_subtotal, session.amount_total) == (5_000, 6_000)
    assert session.customer_creation == "always"
    assert session.invoice
    said = {"org_id": "org_1", "kind": "credits", "credits_cents": "5000"}
    assert session.metadata.to_dict() == said
    assert session.payment_intent.metadata.to_dict() == said


@pytest.mark.parametrize("organization_id", ["org_1", None])
async def test_a_sponsor_pays_without_a_tax_id(market: Market, organization_id: str | None) -> None:
    page = await market.payments.sponsor_checkout(organization_id, 50_000, TO, key="k")
    await market.pay(page.url)
    session = await market.session(page.id)
    assert (session.amount_total, session.currency) == (50_000, "usd")
    assert session.submit_type == "pay"
    assert not session.tax_id_collection.enabled
    assert session.payment_intent.metadata.to_dict() == {
        "kind": "sponsor",
        **({"org_id": organization_id} if organization_id else {}),
    }


async def test_an_upgrade_is_paid_at_once_for_a_whole_new_period(market: Market) -> None:
    before = await bought(market)
    market.processor.advance(days=10)
    await market.payments.upgrade(before, market.price("max_5x"), key="up")
    after = await held(market)
    assert after.price_id == market.price("max_5x")
    assert after.period_start == NOW + timedelta(days=10)
    invoice = await market.payments.invoice(market.made("invoice")[-1]["id"])
    assert (invoice.billing_reason, invoice.is_paid) == ("subscription_update", True)
    assert 10_000 < invoice.pretax_cents < 19_900
    assert invoice.subscription_id == before.subscription_id
    assert invoice.payment_intent_id == market.made("payment_intent")[-1]["id"]
    found = await market.payments.invoice_of_payment(invoice.payment_intent_id or "")
    assert found == invoice.invoice_id


async def test_an_upgrade_asked_for_twice_under_its_key_is_charged_once(market: Market) -> None:
    before = await bought(market)
    for _ in range(2):
        await market.payments.upgrade(before, market.price("max_5x"), key="up")
    assert len(market.made("charge")) == 2  # the plan, and one upgrade


async def test_an_upgrade_whose_answer_was_lost_is_charged_once(market: Market) -> None:
    before = await bought(market)
    market.processor.faults.lose_answer(path="/v1/subscriptions/")
    await market.payments.upgrade(before, market.price("max_5x"), key="up")
    assert market.processor.faults.happened == 1
    assert len(market.made("charge")) == 2


@pytest.mark.parametrize(
    ("behaviour", "message"), [("decline", "was declined"), ("insufficient", "insufficient funds")]
)
async def test_a_refused_card_leaves_the_plan_and_pays_nothing(
    market: Market, behaviour: str, message: str
) -> None:
    before = await bought(market)
    (customer,) = market.made("customer")
    market.processor.set_card(customer["id"], behaviour)
    with pytest.raises(CardRefused, match=message) as refused:
        await market.payments.upgrade(before, market.price("max_5x"), key="up")
    assert refused.value.code == "card_declined"
    assert await held(market) == before
    assert len([one for one in market.made("charge") if one["paid"]]) == 1


async def test_a_downgrade_waits_for_the_end_of_the_period(market: Market) -> None:
    before = await bought(market, "max_5x")
    price = market.price("pro")
    schedule = await market.payments.downgrade(before, price, "pro", "monthly", key="down")
    waiting = await held(market)
    assert waiting == replace(before, schedule_id=schedule)
    assert await market.payments.next_price_id(schedule) == price
    market.processor.advance(days=31)
    after = await held(market)
    assert after.price_id == price
    assert await market.payments.next_price_id(schedule) is None
    assert market.made("invoice")[-1]["total"] == 7_900
    (subscription,) = market.made("subscription")
    assert subscription["metadata"] == {"org_id": "org_1", "plan": "pro", "cadence": "monthly"}


async def test_another_downgrade_takes_the_place_of_the_one_that_waits(market: Market) -> None:
    before = await bought(market, "max_20x")
    await market.payments.downgrade(
        before, market.price("max_5x"), "max_5x", "monthly", key="first"
    )
    waiting = await held(market)
    price = market.price("pro")
    schedule = await market.payments.downgrade(waiting, price, "pro", "monthly", key="second")
    assert schedule == waiting.schedule_id
    market.processor.advance(days=31)
    assert (await held(market)).price_id == price


async def test_a_change_that_waits_is_taken_back(market: Market) -> None:
    before = await bought(market, "max_5x")
    schedule = await market.payments.downgrade(
        before, market.price("pro"), "pro", "monthly", key="down"
    )
    await market.payments.release(schedule, key="back")
    market.processor.advance(days=31)
    after = await held(market)
    assert (after.price_id, after.schedule_id) == (before.price_id, None)


async def test_a_subscription_ends_with_its_period_unless_it_is_resumed(market: Market) -> None:
    before = await bought(market)
    id = before.subscription_id
    for key in ("first", "second"):
        await market.payments.cancel(id, feedback="unused", comment="bye", key=f"cancel:{key}")
        assert (await market.payments.subscription(id)).cancel_at_period_end
        (subscription,) = market.made("subscription")
        assert subscription["cancellation_details"]["feedback"] == "unused"
        await market.payments.resume(id, key=f"resume:{key}")
        assert not (await market.payments.subscription(id)).cancel_at_period_end
    await market.payments.cancel(id, feedback=None, comment=None, key="last")
    market.processor.advance(days=31)
    assert (await market.payments.subscription(id)).status == "canceled"


async def test_a_subscription_that_is_refunded_ends_at_once_and_its_payment_goes_back_once(
    market: Market,
) -> None:
    before = await bought(market)
    (payment,) = market.made("payment_intent")
    refunds = [
        await market.payments.refund(payment["id"], None, organization_id="org_1", key="refund")
        for _ in range(2)
    ]
    await market.payments.end_now(before.subscription_id, key="end")
    (refund,) = market.made("refund")
    assert refunds == [Refunded(refund["id"], 7_900, 7_900)] * 2
    assert (refund["amount"], refund["metadata"]) == (7_900, {"org_id": "org_1"})
    assert (await market.payments.subscription(before.subscription_id)).status == "canceled"
    (charge,) = market.made("charge")
    with pytest.raises(ProcessorRefused) as refused:
        await market.payments.refund(charge["id"], 1, organization_id=None, key="another")
    assert refused.value.code == "charge_already_refunded"


async def test_the_portal_offers_yearly_prices_only_where_they_are_open(market: Market) -> None:
    await bought(market)
    (customer,) = market.made("customer")
    young = await market.payments.portal(customer["id"], TO.cancel_url, yearly=False)
    for _ in range(2):
        await market.payments.portal(customer["id"], TO.cancel_url, yearly=True)
    monthly, yearly = market.made("billing_portal.configuration")
    assert TO.cancel_url in (await market.browser.get(young.url)).text
    every = set(market.prices.values())
    assert _offered(yearly) == every
    assert _offered(monthly) == {market.price(plan) for plan in ("pro", "max_5x", "max_20x")}
    update = yearly["features"]["subscription_update"]
    assert (update["proration_behavior"], update["billing_cycle_anchor"]) == (
        "always_invoice",
        "now",
    )
    assert yearly["features"]["subscription_cancel"]["mode"] == "at_period_end"
    other = StripePayments(SECRET_KEY, market.prices, market.processor.url)
    await other.portal(customer["id"], TO.cancel_url, yearly=True)
    await other.close()
    assert len(market.made("billing_portal.configuration")) == 2


def _offered(configuration: dict[str, Any]) -> set[str]:
    products = configuration["features"]["subscription_update"]["products"]
    return {price for product in products for price in product["prices"]}


async def test_after_a_refused_visit_the_portal_is_looked_up_again(market: Market) -> None:
    await bought(market)
    (customer,) = market.made("customer")
    await market.payments.portal(customer["id"], TO.cancel_url, yearly=True)
    (configuration,) = market.made("billing_portal.configuration")
    configuration["active"] = False
    market.processor.advance(days=1.1)  # the processor forgets keys
    with pytest.raises(ProcessorRefused):
        await market.payments.portal("cus_nobody", TO.cancel_url, yearly=True)
    await market.payments.portal(customer["id"], TO.cancel_url, yearly=True)
    assert len(market.made("billing_portal.configuration")) == 2


async def test_the_portal_needs_every_price_it_offers(market: Market) -> None:
    variable = "PAYMENTS_PRICE_MAX5_YEARLY"
    prices = {name: id for name, id in market.prices.items() if name != variable}
    payments = StripePayments(SECRET_KEY, prices, market.processor.url)
    with pytest.raises(MissingCredential, match=variable):
        await payments.portal("cus_1", TO.cancel_url, yearly=True)
    await payments.close()


async def test_a_dispute_is_read_as_it_is_now(market: Market) -> None:
    page = await market.payments.credits_checkout(ORG, 5_000, TO, key="k")
    await market.pay(page.url)
    (charge,) = market.made("charge")
    made = market.processor.open_dispute(charge["id"])
    assert (await market.payments.dispute(made["id"])).standing == "open"
    market.processor.close_dispute(made["id"], "lost")
    seen = await market.payments.dispute(made["id"])
    assert (seen.standing, seen.disputed_cents) == ("lost", 5_000)
    assert await market.payments.invoice_of_payment("pi_nobody") is None


async def test_events_that_no_endpoint_took_are_named(market: Market) -> None:
    market.processor.open_endpoint("http://127.0.0.1:9/nobody", "whsec_x")
    await bought(market)
    types = ["invoice.paid", *(f"made.up.{n}" for n in range(20)), "payment_intent.succeeded"]
    names = await market.payments.undelivered_events(types[:1] + types[-1:], NOW)
    of_type = {one["id"] for one in market.made("event") if one["type"] in types}
    assert set(names) == of_type
    later = NOW + timedelta(seconds=1)
    assert await market.payments.undelivered_events(["invoice.paid"], later) == []


async def test_a_payout_account_is_opened_once_and_verified_on_the_processors_page(
    market: Market,
) -> None:
    first, again = [
        await market.payments.open_payout_account("usr_1", "ann@example.com", key="account:usr_1")
        for _ in range(2)
    ]
    assert first == again
    assert (first.user_id, first.is_verified) == ("usr_1", False)
    with pytest.raises(ProcessorRefused, match="has not completed onboarding"):
        await market.payments.dashboard_link(first.account_id)
    link = await market.payments.onboarding_link(first.account_id, TO.success_url, TO.cancel_url)
    assert (await market.browser.post(link)).headers["location"] == TO.success_url
    assert (await market.payments.payout_account(first.account_id)).is_verified
    assert first.account_id in await market.payments.dashboard_link(first.account_id)
