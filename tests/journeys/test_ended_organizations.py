"""What becomes of an organization when the only person in it is gone for good."""

from tests.journeys.conftest import Seller
from tests.journeys.strangers import LISTINGS
from tests.journeys.test_compliance import erased
from tolsey.actors.organization.messages import organization
from tolsey.service import Running

SUBSCRIBED = """
INSERT INTO subscriptions (organization_id, customer_id, subscription_id, status, plan, cadence)
VALUES ($1, 'cus_1', 'sub_1', $2, 'pro', 'yearly')
"""
GONE = "UPDATE users SET deletion_requested_at = now() - interval '31 days', password_hash = 'x'"


async def test_what_is_left_of_a_subscription_ends_at_the_processor_with_its_organization(
    live: Running, seller: Seller
) -> None:
    database = live.service.database
    await database.execute(SUBSCRIBED, seller.organization_id, "active")
    await live.service.runtime.admin.passivate(organization(seller.organization_id))
    await database.execute(GONE)
    assert (await erased(live))["usersErased"] == 1
    # Nobody answers at the processor: it waits and is tried for days.
    (call,) = await database.fetch(
        "SELECT payload::text AS said FROM outbox WHERE name LIKE '%EndSubscriptionNow'"
    )
    assert "sub_1" in call["said"]
    (trail,) = await database.fetch(
        "SELECT subject, retention FROM audit_log WHERE event = 'subscription.ended_with_organization'"
    )
    assert tuple(trail.values()) == ("sub_1", "7_years")


async def on_the_market(seller: Seller) -> str:
    """Sell the seller's store; answer where everyone reads of it."""
    made = await seller.post(
        LISTINGS,
        organizationId=seller.organization_id,
        storeId=seller.store_id,
        title="Corner shop",
        askingPrice={"amount": 2_000_000, "currency": "USD"},
    )
    published = await seller.post(f"{LISTINGS}/{made.json()['id']}/publish")
    assert published.json()["status"] == "ACTIVE", published.text
    return f"/api/public/listings/{made.json()['slug']}"


async def test_what_an_organization_sold_leaves_the_market_with_it(
    live: Running, seller: Seller
) -> None:
    shown = await on_the_market(seller)
    assert (await seller.browser.delete("/api/account")).status_code == 202
    assert (await seller.browser.get(shown)).json()["status"] == "PAUSED"
    await live.service.database.execute(GONE)
    assert (await erased(live))["usersErased"] == 1
    assert (await seller.browser.get(shown)).status_code == 404


async def test_a_store_that_is_deleted_leaves_the_market_at_once(seller: Seller) -> None:
    shown = await on_the_market(seller)
    assert (await seller.browser.get(shown)).json()["status"] == "ACTIVE"
    assert (await seller.browser.delete(f"/api/stores/{seller.store_id}")).status_code == 204
    assert (await seller.browser.get(shown)).status_code == 404


async def test_a_subscription_that_has_ended_is_left_alone(live: Running, seller: Seller) -> None:
    database = live.service.database
    await database.execute(SUBSCRIBED, seller.organization_id, "canceled")
    await live.service.runtime.admin.passivate(organization(seller.organization_id))
    await database.execute(GONE)
    assert (await erased(live))["usersErased"] == 1
    ended = "SELECT FROM outbox WHERE name LIKE '%EndSubscriptionNow'"
    assert await database.fetch(ended) == []
