"""A subscriber whose price is no longer sold keeps the plan, renews, upgrades and downgrades."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.http.payments.market import Market
from tests.http.payments.shop import Shop, served
from tests.http.people import PASSWORD, Clock, Person
from tolsey.actors.processor import Addresses, Buyer

SETTING = "PAYMENTS_PRICE_PRO_MONTHLY"
TO = Addresses("https://ours.test/billing", "https://ours.test/billing")


@pytest.fixture
async def raised(market: Market) -> str:
    """Raise the price of Pro on the same product; the old price stays with its subscribers."""
    prices = market.client.v1.prices
    old = await prices.retrieve_async(market.price("pro"))
    made = await prices.create_async(
        {
            "product": str(old.product),
            "currency": "usd",
            "unit_amount": 8_900,
            "recurring": {"interval": "month"},
            "tax_behavior": "exclusive",
        }
    )
    return made.id


@pytest.fixture
async def shop(
    market: Market, raised: str, clock: Clock, database_url: str, redis_url: str
) -> AsyncIterator[Shop]:
    ids = {SETTING.lower(): f"{raised}, {market.price('pro')}"}
    async with served(market, clock, database_url, redis_url, **ids) as shop:
        yield shop


async def sign_in(who: Person) -> None:
    body = {"email": who.email, "password": PASSWORD}
    assert (await who.browser.post("/api/auth/login", json=body)).status_code == 200


async def test_a_subscriber_on_a_price_no_longer_sold_renews_upgrades_and_downgrades(
    shop: Shop, raised: str, ann: Person
) -> None:
    old = shop.market.price("pro")
    page = await shop.market.payments.subscription_checkout(
        Buyer(ann.organization_id), old, "pro", "monthly", TO, key="old"
    )
    await shop.market.pay(page.url)
    await shop.settled()
    bought = await shop.plan(ann)
    assert (bought["plan"], bought["status"]) == ("pro", "active")
    assert (await shop.credits(ann))["available"] == 49_000_000

    await shop.advance(days=31)
    await sign_in(ann)
    renewed = await shop.plan(ann)
    assert renewed["plan"] == "pro"
    assert renewed["periodEnd"] > bought["periodEnd"]
    assert (await shop.credits(ann))["available"] == 49_000_000
    assert shop.charged() == [7_900, 7_900]
    same = await shop.change(ann, "pro")
    assert (same.status_code, same.json()["code"]) == (409, "plan_unchanged")

    assert (await shop.change(ann, "max_5x")).json()["change"] == "upgrade"
    await shop.settled()
    assert (await shop.plan(ann))["plan"] == "max_5x"
    assert (await shop.credits(ann))["available"] == 149_000_000

    assert (await shop.change(ann, "pro")).json()["change"] == "downgrade"
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "pro"
    await shop.advance(days=31)
    await sign_in(ann)
    assert (await shop.plan(ann))["plan"] == "pro"
    assert (await shop.credits(ann))["available"] == 49_000_000
    assert shop.charged()[-1] == 8_900, "a change sells the first price"
    (subscription,) = shop.market.made("subscription")
    assert subscription["items"]["data"][0]["price"]["id"] == raised

    failed = await shop.service.database.fetch(
        "SELECT type, why FROM payment_events WHERE state NOT IN ('applied', 'ignored')"
    )
    assert [dict(row) for row in failed] == []


async def test_a_downgrade_to_a_price_no_longer_sold_is_shown_and_takes_place(
    shop: Shop, ann: Person
) -> None:
    """It was scheduled before the price was raised."""
    await shop.buy(ann, "max_5x")
    (subscription,) = shop.market.made("subscription")
    schedules = shop.market.client.v1.subscription_schedules
    schedule = await schedules.create_async({"from_subscription": subscription["id"]})
    (phase,) = schedule.to_dict()["phases"]
    phases: Any = [
        {
            "items": [{"price": shop.market.price("max_5x"), "quantity": 1}],
            "start_date": phase["start_date"],
            "end_date": phase["end_date"],
        },
        {
            "items": [{"price": shop.market.price("pro"), "quantity": 1}],
            "duration": {"interval": "month", "interval_count": 1},
        },
    ]
    await schedules.update_async(schedule.id, {"end_behavior": "release", "phases": phases})
    await shop.settled()
    assert (await shop.plan(ann))["nextChange"]["plan"] == "pro"
    await shop.advance(days=31)
    await sign_in(ann)
    after = await shop.plan(ann)
    assert (after["plan"], after["nextChange"]) == ("pro", None)
    assert (await shop.credits(ann))["available"] == 49_000_000


async def test_a_checkout_and_the_portal_sell_the_first_price(
    shop: Shop, raised: str, ann: Person
) -> None:
    await shop.buy(ann)
    assert shop.charged() == [8_900]
    visit = await shop.post(ann, "/payments/portal")
    assert visit.status_code == 200, visit.text
    (configuration,) = shop.market.made("billing_portal.configuration")
    products = configuration["features"]["subscription_update"]["products"]
    offered = {price for product in products for price in product["prices"]}
    assert raised in offered
    assert shop.market.price("pro") not in offered
