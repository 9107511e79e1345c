"""Verified revenue is read anew on an agent's word, as often as its user may."""

import asyncio
from typing import Any

import pytest

from tests.mcp.tools.shop import answered
from tests.mcp.tools.two_stores import SHOPS, Owner, TwoStores, refused, result
from tests.mcp.wire import Agent
from tolsey.actors.listing.messages import CreateListing, RevenueSourceAccepted, listing
from tolsey.http.web import policies
from tolsey.sandbox.commerce.platform import Platform
from tolsey.storage.records.selling.listing import COMMERCE, ListingFields
from tolsey.storage.selling import listings

pytestmark = pytest.mark.anyio


async def listed(two_stores: TwoStores, owner: Owner) -> str:
    """Let an owner's store be for sale."""
    listing_id = f"listing_{owner.name}"
    message = CreateListing(
        organization_id=owner.organization_id,
        store_id=owner.store_id,
        fields=ListingFields(title="A shop"),
        by=owner.user_id,
        at=two_stores.service.clock(),
    )
    await two_stores.service.runtime.ask(listing(listing_id), message)
    return listing_id


async def verified(two_stores: TwoStores, platform: Platform, owner: Owner) -> str:
    """Let an owner's revenue be verified at the shop."""
    listing_id, domain = await listed(two_stores, owner), SHOPS[owner.name]
    message = RevenueSourceAccepted(
        organization_id=owner.organization_id,
        provider=COMMERCE,
        shop_domain=domain,
        client_id=f"app-{domain}",
        sealed_secret=listings.seal_secret(
            two_stores.service.vault, listing_id, COMMERCE, platform.shop(domain).spec.client_secret
        ),
        by=owner.user_id,
        at=two_stores.service.clock(),
    )
    await two_stores.service.runtime.ask(listing(listing_id), message)
    await read(two_stores, listing_id, 1)
    return listing_id


async def read(two_stores: TwoStores, listing_id: str, times: int) -> None:
    """Wait until the shop was read so often."""
    async with asyncio.timeout(60):
        while True:
            row = await two_stores.database.fetchrow(
                "SELECT count(*) AS n FROM revenue_snapshots WHERE listing_id = $1", listing_id
            )
            if row is not None and row["n"] >= times:
                return
            await asyncio.sleep(0.02)


async def refreshed(agent: Agent, key: str, **more: Any) -> dict[str, Any]:
    return answered(await agent.call("refresh_revenue", idempotency_key=key, **more))


async def test_the_shop_is_read_anew_once_for_each_key(
    two_stores: TwoStores, platform: Platform
) -> None:
    listing_id = await verified(two_stores, platform, two_stores.ann)
    agent = await two_stores.agent(two_stores.ann, ["store:read"])
    plan = await refreshed(agent, "key-00001", dry_run=True)
    assert (plan["status"], plan["after"]) == ("planned", {"refreshing": [listing_id]})
    first = await refreshed(agent, "key-00001")
    assert (first["status"], first["after"]) == ("applied", {"refreshing": [listing_id]})
    again = await refreshed(agent, "key-00001")
    assert again == {**first, "status": "replayed"}
    reported = result(await agent.call("get_operation", operation_id=first["operation_id"]))
    assert reported["state"] == "applied"


async def test_a_store_that_is_not_for_sale_has_nothing_to_read(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    await listed(two_stores, two_stores.bob)  # somebody else's is
    assert "no_listing" in refused(await agent.call("refresh_revenue", idempotency_key="key-00001"))


async def test_without_a_working_source_the_listing_says_so(two_stores: TwoStores) -> None:
    await listed(two_stores, two_stores.ann)
    agent = await two_stores.agent(two_stores.ann)
    reported = refused(await agent.call("refresh_revenue", idempotency_key="key-00001"))
    assert "no longer connected" in reported


async def test_a_user_refreshes_so_often_in_an_hour_and_no_more(two_stores: TwoStores) -> None:
    await listed(two_stores, two_stores.ann)
    agent = await two_stores.agent(two_stores.ann)
    for n in range(policies.REVENUE_REFRESH.limit):
        await agent.call("refresh_revenue", idempotency_key=f"key-{n:05}")
    answer = await agent.call("refresh_revenue", idempotency_key="key-one-more")
    assert answer.status_code == 429
    assert answer.json()["error"]["data"]["violated-policies"] == ["revenue-refresh"]
    assert int(answer.headers["retry-after"]) > 0
    row = await two_stores.database.fetchrow(
        "SELECT event, metadata->>'code' AS code FROM audit_log ORDER BY id DESC LIMIT 1"
    )
    assert row is not None
    assert tuple(row) == ("agent.write.refused", "too_many_requests")
    bobs = await two_stores.agent(two_stores.bob)
    assert "no_listing" in refused(await bobs.call("refresh_revenue", idempotency_key="key-00001"))
