import re
from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Shop

pytestmark = STRIPE


async def configured(shop: Shop, *prices: str, **update: Any) -> Any:
    products = []
    for price in prices:
        found = await shop.client.v1.prices.retrieve_async(price)
        products.append({"product": found.product, "prices": [price]})
    given: Any = {
        "features": {
            "customer_update": {"enabled": True, "allowed_updates": ["email", "tax_id"]},
            "invoice_history": {"enabled": True},
            "payment_method_update": {"enabled": True},
            "subscription_cancel": {
                "enabled": True,
                "mode": "at_period_end",
                "cancellation_reason": {
                    "enabled": True,
                    "options": ["too_expensive", "unused"],
                },
            },
            "subscription_update": {
                "enabled": True,
                "default_allowed_updates": ["price"],
                "proration_behavior": "always_invoice",
                "products": products,
                "schedule_at_period_end": {
                    "conditions": [
                        {"type": "decreasing_item_amount"},
                        {"type": "shortening_interval"},
                    ]
                },
                **update,
            },
        }
    }
    return await shop.client.v1.billing_portal.configurations.create_async(given)


async def entered(shop: Shop, customer: str) -> Any:
    return await shop.client.v1.billing_portal.sessions.create_async(
        {"customer": customer, "return_url": "https://shop.test/billing"}
    )


async def test_a_customer_upgrades_at_once_and_downgrades_at_the_periods_end(shop: Shop) -> None:
    low, high = await shop.price("Pro", 7_900), await shop.price("Max", 19_900)
    sub = await shop.subscribe(low)
    await configured(shop, low, high, billing_cycle_anchor="now")
    portal = await entered(shop, sub.customer)
    page = (await shop.browser.get(portal.url)).text
    assert "Change to Max" in page
    assert "https://shop.test/billing" in page
    assert re.findall("<option>(.*?)</option>", page) == ["too_expensive", "unused"]
    await shop.browser.post(portal.url, data={"subscription": sub.id, "price": high})
    changed = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert changed["items"].data[0].price.id == high
    assert shop.last("invoice.paid")["billing_reason"] == "subscription_update"
    await shop.browser.post(portal.url, data={"subscription": sub.id, "price": low})
    waiting = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert waiting.schedule
    assert waiting["items"].data[0].price.id == high
    shop.processor.advance(days=32)
    later = await shop.client.v1.subscriptions.retrieve_async(sub.id)
    assert later["items"].data[0].price.id == low


async def test_a_customer_cancels_with_a_reason(shop: Shop) -> None:
    price = await shop.price()
    sub = await shop.subscribe(price)
    await configured(shop, price)
    portal = await entered(shop, sub.customer)
    form = {"subscription": sub.id, "action": "cancel", "feedback": "unused", "comment": "bye"}
    answer = await shop.browser.post(portal.url, data=form)
    assert "ends at the end of the period" in answer.text
    updated = shop.last("customer.subscription.updated")
    assert updated["cancel_at_period_end"]
    assert updated["cancellation_details"]["feedback"] == "unused"


async def test_what_is_not_offered_cannot_be_taken(shop: Shop) -> None:
    low, high = await shop.price("Pro", 7_900), await shop.price("Max", 19_900)
    sub = await shop.subscribe(low)
    await configured(shop, low)
    portal = await entered(shop, sub.customer)
    form = {"subscription": sub.id, "price": high}
    assert "not offered" in (await shop.browser.post(portal.url, data=form)).text


async def test_there_is_no_portal_without_a_configuration(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({})
    with pytest.raises(stripe.InvalidRequestError, match="until you save your customer portal"):
        await entered(shop, customer.id)


async def test_a_deep_link_offers_one_change(shop: Shop) -> None:
    low, middle = await shop.price("Pro", 7_900), await shop.price("Max 5x", 19_900)
    high = await shop.price("Max 20x", 34_900)
    sub = await shop.subscribe(low)
    await configured(shop, low, middle, high)
    given: Any = {
        "customer": sub.customer,
        "flow_data": {
            "type": "subscription_update_confirm",
            "subscription_update_confirm": {
                "subscription": sub.id,
                "items": [{"id": sub["items"].data[0].id, "price": high}],
            },
        },
    }
    portal = await shop.client.v1.billing_portal.sessions.create_async(given)
    page = (await shop.browser.get(portal.url)).text
    assert "Change to Max 20x" in page
    assert "Change to Max 5x" not in page


async def test_a_session_may_name_another_configuration(shop: Shop) -> None:
    low, high = await shop.price("Pro", 7_900), await shop.price("Max", 19_900)
    sub = await shop.subscribe(low)
    first, second = await configured(shop, low, high), await configured(shop, low)
    assert (first.is_default, second.is_default) == (True, False)
    portal = await shop.client.v1.billing_portal.sessions.create_async(
        {"customer": sub.customer, "configuration": second.id}
    )
    assert "Change to" not in (await shop.browser.get(portal.url)).text
