from datetime import UTC, datetime
from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Shop, in_order

pytestmark = STRIPE
DAY = 86_400


def item(sub: Any) -> Any:
    return sub["items"].data[0]


async def change(shop: Shop, sub: Any, price: str, **more: Any) -> Any:
    given: Any = {
        "items": [{"id": item(sub).id, "price": price}],
        "proration_behavior": "always_invoice",
        **more,
    }
    return await shop.client.v1.subscriptions.update_async(sub.id, given)


async def invoice_of(shop: Shop, sub: Any) -> Any:
    found = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    return await shop.client.v1.invoices.retrieve_async(found.latest_invoice)  # type: ignore[arg-type]


async def test_a_subscription_begins_on_the_page(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    assert (sub.status, sub.metadata.to_dict()) == ("active", {"org_id": "org_1"})
    assert datetime.fromtimestamp(item(sub).current_period_end, UTC).day == 1
    invoice = shop.last("invoice.paid")
    details = invoice["parent"]["subscription_details"]
    assert details["subscription"] == sub.id
    assert details["metadata"] == {"org_id": "org_1"}
    line = invoice["lines"]["data"][0]
    assert line["parent"]["subscription_item_details"]["subscription_item"] == item(sub).id
    assert line["pricing"]["price_details"]["price"] == item(sub).price.id
    assert line["period"]["end"] == item(sub).current_period_end
    assert invoice["billing_reason"] == "subscription_create"
    order = ["invoice.paid", "customer.subscription.created", "checkout.session.completed"]
    assert in_order(order, shop.types())


async def test_a_charge_leads_to_its_subscription(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    charge = shop.last("charge.succeeded")
    assert "invoice" not in charge
    intent = charge["payment_intent"]
    found = await shop.client.v1.invoice_payments.list_async(
        {"payment": {"type": "payment_intent", "payment_intent": intent}}
    )
    invoice = await shop.client.v1.invoices.retrieve_async(
        found.data[0].invoice,  # type: ignore[arg-type]
        {"expand": ["payments"]},
    )
    assert invoice.parent
    assert invoice.parent.subscription_details
    assert invoice.parent.subscription_details.subscription == sub.id
    assert invoice.payments
    assert invoice.payments.data[0].payment.payment_intent == intent


async def test_a_declined_card_makes_no_subscription(shop: Shop) -> None:
    session = await shop.session(
        mode="subscription", line_items=[{"price": await shop.price(), "quantity": 1}]
    )
    assert "declined" in (await shop.pay(session.url, "decline")).text
    assert not list(shop.processor.platform.books.each("subscription"))
    assert (await shop.pay(session.url)).status_code == 303


async def test_a_period_ends_and_the_next_one_is_billed(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    shop.processor.advance(days=31)
    renewed = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert item(renewed).current_period_start == item(sub).current_period_end
    invoice = shop.last("invoice.paid")
    assert (invoice["billing_reason"], invoice["total"]) == ("subscription_cycle", 7_900)
    assert invoice["lines"]["data"][0]["period"]["end"] == item(renewed).current_period_end


async def test_months_keep_their_day(shop: Shop) -> None:
    shop.processor.advance(days=90)  # 30 January
    sub = await shop.subscribe(await shop.price())
    days = []
    for _ in range(3):
        shop.processor.advance(days=32)
        renewed = await shop.client.v1.subscriptions.retrieve_async(sub.id)
        days.append(datetime.fromtimestamp(item(renewed).current_period_start, UTC).day)
    assert days == [28, 30, 30]


async def test_an_upgrade_is_prorated_and_invoiced_at_once(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    high = await shop.price("Max", 19_900)
    shop.processor.advance(days=15)
    changed = await change(shop, sub, high)
    assert item(changed).price.id == high
    assert item(changed).current_period_end == item(sub).current_period_end
    invoice = shop.last("invoice.paid")
    assert invoice["billing_reason"] == "subscription_update"
    amounts = [line["amount"] for line in invoice["lines"]["data"]]
    assert amounts == [-3_950, 9_950]
    assert all(
        line["parent"]["subscription_item_details"]["proration"]
        for line in invoice["lines"]["data"]
    )


async def test_an_upgrade_may_begin_the_cycle_anew(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    high = await shop.price("Max", 19_900)
    shop.processor.advance(days=29)
    now = int(shop.processor.clock.now().timestamp())
    changed = await change(shop, sub, high, billing_cycle_anchor={"type": "now"})
    assert (changed.billing_cycle_anchor, item(changed).current_period_start) == (now, now)
    amounts = [line["amount"] for line in shop.last("invoice.paid")["lines"]["data"]]
    assert amounts == [-263, 19_900]
    shop.processor.advance(days=31)
    assert shop.last("invoice.paid")["total"] == 19_900


async def test_a_preview_asks_what_the_change_then_costs(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    high = await shop.price("Max", 19_900)
    shop.processor.advance(days=10)
    at = int(shop.processor.clock.now().timestamp())
    preview = await shop.client.v1.invoices.create_preview_async(
        {
            "subscription": sub.id,
            "subscription_details": {
                "items": [{"id": item(sub).id, "price": high}],
                "proration_behavior": "always_invoice",
                "proration_date": at,
            },
        }
    )
    shop.processor.advance(3_600)
    await change(shop, sub, high, proration_date=at)
    assert shop.last("invoice.paid")["total"] == preview.total
    assert preview.id != shop.last("invoice.paid")["id"]


async def test_a_declined_upgrade_may_change_nothing(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price(), card="4000000000000341")
    high = await shop.price("Max", 19_900)
    shop.processor.set_card(sub.customer, "decline")
    before = len(shop.types())
    with pytest.raises(stripe.CardError) as refused:
        await change(shop, sub, high, payment_behavior="error_if_incomplete")
    assert refused.value.http_status == 402
    assert len(shop.types()) == before
    assert item(await shop.client.v1.subscriptions.retrieve_async(sub.id)).price.id != high


async def test_an_upgrade_may_wait_for_its_payment(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    high = await shop.price("Max", 19_900)
    shop.processor.set_card(sub.customer, "decline")
    with pytest.raises(stripe.InvalidRequestError, match="pending_if_incomplete: metadata"):
        await change(
            shop, sub, high, payment_behavior="pending_if_incomplete", metadata={"plan": "max"}
        )
    waiting = await change(shop, sub, high, payment_behavior="pending_if_incomplete")
    assert waiting.pending_update
    assert (waiting.status, item(waiting).price.id) == ("active", item(sub).price.id)
    invoice = await invoice_of(shop, sub)
    page = await shop.browser.post(invoice.hosted_invoice_url, data={"card": "4242424242424242"})
    assert "paid" in page.text
    taken = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert (taken.pending_update, item(taken).price.id) == (None, high)


async def test_an_upgrade_that_is_never_paid_is_dropped(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    shop.processor.set_card(sub.customer, "authenticate")
    high = await shop.price("Max", 19_900)
    more = {"payment_behavior": "pending_if_incomplete", "off_session": True}
    await change(shop, sub, high, **more)
    assert "invoice.payment_action_required" in shop.types()
    shop.processor.advance(days=1)
    dropped = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert (dropped.pending_update, item(dropped).price.id) == (None, item(sub).price.id)
    assert (await invoice_of(shop, sub)).status == "void"


async def test_an_unpaid_renewal_is_tried_again_and_then_ends_it(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    shop.processor.set_card(sub.customer, "decline")
    shop.processor.advance(days=31)
    late = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert late.status == "past_due"
    failed = shop.last("invoice.payment_failed")
    assert failed["next_payment_attempt"] - failed["created"] == 3 * DAY
    assert failed["hosted_invoice_url"]
    shop.processor.advance(days=16)
    ended = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert ended.status == "canceled"
    assert shop.types().count("invoice.payment_failed") == 4
    assert shop.last("customer.subscription.deleted")["cancellation_details"]["reason"] == (
        "payment_failed"
    )


async def test_a_renewal_that_wants_the_customer_is_paid_on_its_page(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price(), card="4000002500003155")
    shop.processor.advance(days=31)
    asked = shop.last("invoice.payment_action_required")
    assert (await shop.client.v1.subscriptions.retrieve_async(sub.id)).status == "past_due"
    assert "Pay 79.00" in (await shop.browser.get(asked["hosted_invoice_url"])).text
    await shop.browser.post(asked["hosted_invoice_url"], data={"card": "4242424242424242"})
    assert (await shop.client.v1.subscriptions.retrieve_async(sub.id)).status == "active"
    assert shop.last("customer.subscription.updated")["status"] == "active"


async def test_a_downgrade_waits_for_the_periods_end(shop: Shop) -> None:
    low = await shop.price("Pro", 7_900)
    sub = await shop.subscribe(await shop.price("Max", 19_900))
    schedules = shop.client.v1.subscription_schedules
    schedule = await schedules.create_async({"from_subscription": sub.id})
    first = schedule.phases[0]
    given: Any = {
        "end_behavior": "release",
        "proration_behavior": "none",
        "phases": [
            {
                "items": [{"price": item(sub).price.id, "quantity": 1}],
                "start_date": first.start_date,
                "end_date": first.end_date,
            },
            {
                "items": [{"price": low, "quantity": 1}],
                "duration": {"interval": "month", "interval_count": 1},
                "proration_behavior": "none",
                "metadata": {"plan": "pro"},
            },
        ],
    }
    await schedules.update_async(schedule.id, given)
    with pytest.raises(stripe.InvalidRequestError, match="managed by the subscription schedule"):
        await shop.client.v1.subscriptions.update_async(sub.id, {"cancel_at_period_end": True})
    shop.processor.advance(days=31)
    changed = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert item(changed).price.id == low
    assert changed.metadata.to_dict() == {"org_id": "org_1", "plan": "pro"}
    assert shop.last("invoice.paid")["total"] == 7_900
    shop.processor.advance(days=31)
    released = await schedules.retrieve_async(schedule.id)
    assert (released.status, released.released_subscription) == ("released", sub.id)


async def test_a_downgrade_is_undone_by_a_release(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price("Max", 19_900))
    schedules = shop.client.v1.subscription_schedules
    schedule = await schedules.create_async({"from_subscription": sub.id})
    with pytest.raises(stripe.InvalidRequestError, match="already attached"):
        await schedules.create_async({"from_subscription": sub.id})
    await schedules.release_async(schedule.id)
    found = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert found.schedule is None
    shop.processor.advance(days=31)
    assert shop.last("invoice.paid")["total"] == 19_900


async def test_a_cancellation_waits_for_the_periods_end(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    canceled = await shop.client.v1.subscriptions.update_async(
        sub.id,
        {"cancel_at_period_end": True, "cancellation_details": {"feedback": "too_expensive"}},
    )
    assert canceled.cancel_at == item(sub).current_period_end
    assert shop.last("customer.subscription.updated")["cancel_at_period_end"] is True
    shop.processor.advance(days=31)
    gone = shop.last("customer.subscription.deleted")
    assert (gone["status"], gone["cancellation_details"]["feedback"]) == (
        "canceled",
        "too_expensive",
    )
    assert gone["ended_at"] == item(sub).current_period_end
    assert "subscription_cycle" not in [
        invoice["billing_reason"] for invoice in shop.processor.platform.books.each("invoice")
    ]
    with pytest.raises(stripe.InvalidRequestError, match="canceled subscription"):
        await shop.client.v1.subscriptions.update_async(sub.id, {"metadata": {"a": "b"}})


async def test_subscriptions_are_listed_by_status(shop: Shop) -> None:
    price = await shop.price()
    first, second = await shop.subscribe(price), await shop.subscribe(price)
    await shop.client.v1.subscriptions.cancel_async(first.id)
    listed = shop.client.v1.subscriptions.list_async
    assert [s.id for s in (await listed()).data] == [second.id]
    assert [s.id for s in (await listed({"status": "canceled"})).data] == [first.id]
    assert len((await listed({"status": "all", "expand": ["data.customer"]})).data) == 2


async def test_a_bank_debit_can_bounce_after_the_subscription_began(shop: Shop) -> None:
    session = await shop.session(
        mode="subscription", line_items=[{"price": await shop.price(), "quantity": 1}]
    )
    await shop.pay(session.url, "later")
    assert shop.last("customer.subscription.created")["status"] == "active"
    assert shop.last("checkout.session.completed")["payment_status"] == "unpaid"
    assert "invoice.paid" not in shop.types()
    shop.processor.settle(shop.last("payment_intent.processing")["id"], paid=False)
    assert shop.last("customer.subscription.updated")["status"] == "past_due"


async def test_what_a_change_gives_back_stays_on_the_customers_balance(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price("Max", 19_900))
    low = await shop.price("Pro", 7_900)
    shop.processor.advance(days=15)
    await change(shop, sub, low)
    customer = await shop.client.v1.customers.retrieve_async(sub.customer)
    assert (customer.balance, shop.last("invoice.paid")["amount_due"]) == (-6_000, 0)
    shop.processor.advance(days=16)
    renewal = shop.last("invoice.paid")
    assert (renewal["total"], renewal["amount_due"]) == (7_900, 1_900)


async def test_a_yearly_plan_begins_a_cycle_of_its_own(shop: Shop) -> None:
    sub = await shop.subscribe(await shop.price())
    yearly = await shop.price("Pro yearly", 79_000, "year")
    shop.processor.advance(days=15)
    changed = await change(shop, sub, yearly)
    length = item(changed).current_period_end - item(changed).current_period_start
    assert length == 365 * DAY
    assert [line["amount"] for line in shop.last("invoice.paid")["lines"]["data"]] == [
        -3_950,
        79_000,
    ]


async def test_a_subscription_is_made_by_request(shop: Shop) -> None:
    price = await shop.price()
    customer = await shop.client.v1.customers.create_async({"payment_method": "pm_card_visa"})
    given: Any = {"customer": customer.id, "items": [{"price": price}]}
    with pytest.raises(stripe.InvalidRequestError, match="no attached payment source"):
        await shop.client.v1.subscriptions.create_async(given)
    given["default_payment_method"] = "pm_card_authenticationRequired"
    given["off_session"] = True
    made = await shop.client.v1.subscriptions.create_async(given)
    assert made.status == "incomplete"
    shop.processor.advance(days=1)
    found = await shop.client.v1.subscriptions.retrieve_async(made.id)
    assert found.status == "incomplete_expired"


async def test_tax_is_kept_apart_on_an_invoice(shop: Shop) -> None:
    shop.processor.platform.tax_basis_points = 1_900
    session = await shop.session(
        mode="subscription",
        line_items=[{"price": await shop.price(), "quantity": 1}],
        automatic_tax={"enabled": True},
    )
    assert session.amount_total == 9_401
    await shop.pay(session.url)
    invoice = shop.last("invoice.paid")
    assert (invoice["total"], invoice["total_excluding_tax"]) == (9_401, 7_900)
    assert invoice["total_taxes"][0]["amount"] == 1_501


async def won_price(shop: Shop, amount: int = 27_000, **options: Any) -> str:
    product = await shop.client.v1.products.create_async({"name": "Pro"})
    given: Any = {
        "product": product.id,
        "currency": "krw",
        "unit_amount": amount,
        "recurring": {"interval": "month"},
        "currency_options": options,
    }
    return (await shop.client.v1.prices.create_async(given)).id


async def test_a_subscription_is_billed_in_another_currency_than_its_price(shop: Shop) -> None:
    price = await won_price(shop, usd={"unit_amount": 2_000})
    session = await shop.session(
        mode="subscription", currency="usd", line_items=[{"price": price, "quantity": 1}]
    )
    assert (session.currency, session.amount_total) == ("usd", 2_000)
    assert (await shop.pay(session.url)).status_code == 303
    done = await shop.client.v1.checkout.sessions.retrieve_async(session.id)
    shop.processor.advance(days=32)
    sub = await shop.client.v1.subscriptions.retrieve_async(done.subscription)  # type: ignore[arg-type]
    assert sub.currency == "usd"
    assert (item(sub).price.currency, item(sub).price.unit_amount) == ("krw", 27_000)
    charges = shop.processor.platform.books.each("charge")
    assert [(one["currency"], one["amount"]) for one in charges] == [("usd", 2_000)] * 2
    line = shop.last("invoice.paid")["lines"]["data"][0]
    assert (line["currency"], line["amount"]) == ("usd", 2_000)

    dear = await won_price(shop, 54_000, usd={"unit_amount": 4_000})
    shop.processor.advance(days=15)
    await change(shop, sub, dear)
    invoice = await invoice_of(shop, sub)
    assert invoice.currency == "usd"
    assert 900 < invoice.amount_due < 1_100  # half a month of the difference


async def test_the_currencies_of_a_price_are_shown_where_they_are_asked_for(shop: Shop) -> None:
    price = await won_price(shop, usd={"unit_amount": 2_000, "tax_behavior": "inclusive"})
    prices = shop.client.v1.prices
    assert "currency_options" not in (await prices.retrieve_async(price)).to_dict()
    shown = await prices.retrieve_async(price, {"expand": ["currency_options"]})
    assert shown.currency_options is not None
    options = shown.currency_options.to_dict()
    assert {name: one["unit_amount"] for name, one in options.items()} == {
        "krw": 27_000,
        "usd": 2_000,
    }
    assert options["usd"]["tax_behavior"] == "inclusive"

    customer = await shop.client.v1.customers.create_async({"payment_method": "pm_card_visa"})
    given: Any = {
        "customer": customer.id,
        "items": [{"price": price}],
        "default_payment_method": "pm_card_visa",
    }
    subscriptions = shop.client.v1.subscriptions
    given["currency"] = "usd"
    made = await subscriptions.create_async(given)
    listed = await shop.client.v1.subscription_items.list_async(
        {"subscription": made.id, "expand": ["data.price.currency_options"]}
    )
    (of_item,) = listed.data
    assert of_item.price.currency_options is not None
    assert of_item.price.currency_options["usd"].unit_amount == 2_000
    given["currency"] = "eur"
    with pytest.raises(stripe.InvalidRequestError, match="supports currencies of `krw`, `usd`"):
        await subscriptions.create_async(given)
    assert len(list(shop.processor.platform.books.each("subscription"))) == 1
