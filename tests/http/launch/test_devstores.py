"""Shops of the pool: registered by operators, handed out to merchants, and made their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import httpx
import pytest

from tests import timing
from tests.http.deals.handovers import being_sold, handed_over
from tests.http.launch.merchant import Merchant
from tests.http.people import PASSWORD, Clock
from tests.mcp.tools.two_stores import TwoStores
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import Shop, ShopSpec
from tolsey.storage.people import administrators

POOL = "/api/admin/devstore-pool"
STATIC = "pool-static.myshopify.com"
GRANTED = "pool-granted.myshopify.com"


@asynccontextmanager
async def operator(two_stores: TwoStores) -> AsyncIterator[httpx.AsyncClient]:
    """Let an administrator in."""
    made = await administrators.create_administrator(
        two_stores.database, "ops@example.com", PASSWORD
    )
    async with await two_stores.person(made.user_id) as client:
        yield client


@pytest.fixture
def pooled(platform: Platform) -> Shop:
    """Open a client-transfer store of ours on the platform, whose app is of today."""
    spec = ShopSpec(domain=GRANTED, client_id="app-pool", plan_name="affiliate")
    return platform.add_shop(spec)


async def registered(two_stores: TwoStores, shop: Shop) -> None:
    """Register a shop as an operator."""
    async with operator(two_stores) as ops:
        keys = {"clientId": shop.spec.client_id, "clientSecret": shop.spec.client_secret}
        made = await ops.post(POOL, json={"shopDomain": shop.domain, **keys})
        assert made.status_code == 201, made.text


async def until(two_stores: TwoStores, sql: str) -> list[Any]:
    """Wait until there is a row."""
    return [dict(row) for row in await timing.until(lambda: two_stores.database.fetch(sql))]


async def test_a_shop_is_registered_only_when_its_app_opens_it_and_it_can_be_handed_over(
    two_stores: TwoStores, platform: Platform, pooled: Shop
) -> None:
    sold = platform.add_shop(ShopSpec(domain=STATIC, client_id="app-sold", plan_name="basic"))
    token = sold.issue_token(platform.now(), seconds=10**9).text
    async with operator(two_stores) as ops:
        secret = {"clientSecret": pooled.spec.client_secret}
        of = {"shopDomain": GRANTED, **secret}
        wrong = await ops.post(POOL, json={**of, "clientId": "another"})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "commerce_rejected")
        neither = await ops.post(POOL, json=of)
        assert neither.status_code == 422
        live = await ops.post(POOL, json={"shopDomain": STATIC, "accessToken": token, **secret})
        assert (live.status_code, live.json()["code"]) == (422, "not_transferable")
        assert (await ops.get(POOL)).json()["items"] == []

        made = await ops.post(POOL, json={**of, "clientId": "app-pool"})
        assert made.status_code == 201, made.text
        assert (made.json()["state"], made.json()["tokenKind"]) == ("AVAILABLE", "grant")
        sold.plan_name = "partner_test"
        static = await ops.post(POOL, json={"shopDomain": STATIC, "accessToken": token, **secret})
        assert (static.status_code, static.json()["tokenKind"]) == (201, "static")
        listed = (await ops.get(f"{POOL}?state=AVAILABLE&limit=1")).json()
        assert [one["shopDomain"] for one in listed["items"]] == [GRANTED]
        assert listed["nextCursor"] is not None
        assert "secret" not in str(listed).lower()
    kept = await two_stores.database.fetch("SELECT * FROM devstore_pool")
    assert all(token not in str(dict(row)) for row in kept)
    assert all(str(secret["clientSecret"]) not in str(dict(row)) for row in kept)
    async with await two_stores.person(two_stores.ann.user_id) as ann:
        assert (await ann.get(POOL)).status_code == 403


async def test_one_shop_goes_to_one_of_two_stores_and_is_connected_at_once(
    two_stores: TwoStores, pooled: Shop
) -> None:
    await registered(two_stores, pooled)
    ann, bob = two_stores.ann, two_stores.bob

    async def wants(owner: Any) -> httpx.Response:
        async with await two_stores.person(owner.user_id) as client:
            body = {"storeId": owner.store_id}
            return await client.post("/api/wizard/store/provision", json=body)

    answers = await asyncio.gather(wants(ann), wants(bob))
    both = sorted(zip(answers, (ann, bob), strict=True), key=lambda pair: pair[0].status_code)
    (got, winner), (nothing, loser) = both
    assert (got.status_code, got.json()["state"]) == (200, "CLAIMED"), got.text
    assert got.json()["shopDomain"] == GRANTED
    assert (nothing.status_code, nothing.json()["code"]) == (409, "pool_empty")
    again = await wants(winner)
    assert again.json() == got.json()
    (row,) = await two_stores.database.fetch(
        "SELECT store_id, status FROM integration_connections WHERE shop_domain = $1", GRANTED
    )
    assert tuple(row) == (winner.store_id, "active")
    # What was handed out keeps its keys.
    async with await two_stores.person(loser.user_id) as stranger:
        of = {"storeId": winner.store_id}
        for path, body in (("provision", of), ("transfer", {**of, "email": "eve@example.com"})):
            answer = await stranger.post(f"/api/wizard/store/{path}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_shop_that_lets_nobody_in_is_passed_over_and_shown_to_operators(
    two_stores: TwoStores, platform: Platform, pooled: Shop
) -> None:
    async with operator(two_stores) as ops:
        secret = {"clientSecret": pooled.spec.client_secret}
        body = {"shopDomain": GRANTED, "clientId": "app-pool", **secret}
        assert (await ops.post(POOL, json=body)).status_code == 201
        other = platform.add_shop(ShopSpec(domain=STATIC, plan_name="partner_test"))
        token = other.issue_token(platform.now(), seconds=10**9).text
        body = {"shopDomain": STATIC, "accessToken": token, **secret}
        assert (await ops.post(POOL, json=body)).status_code == 201
        pooled.permitted = False
        async with await two_stores.person(two_stores.ann.user_id) as ann:
            wanted = {"storeId": two_stores.ann.store_id}
            found = await ann.post("/api/wizard/store/provision", json=wanted)
        assert (found.status_code, found.json()["shopDomain"]) == (200, STATIC)
        by_domain = {one["shopDomain"]: one for one in (await ops.get(POOL)).json()["items"]}
        assert by_domain[GRANTED]["state"] == "AVAILABLE"
        assert by_domain[GRANTED]["refused"]
        assert by_domain[STATIC]["storeId"] == two_stores.ann.store_id
        page = (await ops.get("/admin/devstores")).text
        assert "Lets nobody in" in page
        assert two_stores.ann.store_id in page
        assert STATIC not in (await ops.get("/admin/devstores?state=AVAILABLE")).text


async def test_a_transfer_alerts_operators_lapses_after_a_week_and_ends_with_the_test_plan(
    merchant: Merchant, pooled: Shop
) -> None:
    two_stores, store_id = merchant.two_stores, merchant.store_id
    await registered(two_stores, pooled)
    wish = {"storeId": store_id, "email": "bob@example.com"}
    taken = await merchant.client.post("/api/wizard/store/provision", json={"storeId": store_id})
    assert (taken.status_code, taken.json()["code"]) == (409, "already_connected")
    early = await merchant.client.post("/api/wizard/store/transfer", json=wish)
    assert (early.status_code, early.json()["code"]) == (409, "not_provisioned")
    query = f"/api/integrations/commerce/custom-app?storeId={store_id}"
    assert (await merchant.client.delete(query)).status_code == 200
    assert (await merchant.launch()).status_code == 201
    taken = await merchant.client.post("/api/wizard/store/provision", json={"storeId": store_id})
    assert taken.status_code == 200, taken.text

    async def asked(email: str = "bob@example.com") -> httpx.Response:
        body = {**wish, "email": email}
        return await merchant.client.post("/api/wizard/store/transfer", json=body)

    first = await asked()
    assert (first.status_code, first.json()["state"]) == (200, "TRANSFER_REQUESTED")
    assert (await asked()).json() == first.json()
    other = await asked("eve@example.com")
    assert (other.status_code, other.json()["code"]) == (409, "transfer_requested")
    (mail,) = await until(
        two_stores,
        "SELECT recipient, subject FROM outbound_mail WHERE event = 'transfer_requested'",
    )
    assert mail["recipient"] == "ops@example.com"
    assert GRANTED in mail["subject"]
    assert (await merchant.tick())["transfers"] == 1

    cast("Clock", two_stores.service.clock).advance(timedelta(days=7))
    await merchant.tick()
    await until(two_stores, "SELECT 1 FROM devstore_transfers WHERE state = 'CLAIMED'")
    assert (await merchant.tick())["transfers"] == 0
    assert (await asked()).json()["state"] == "TRANSFER_REQUESTED"

    await being_sold(two_stores, "sold", two_stores.ann, two_stores.bob)
    # Bob, who buys the business, accepts, and the grant of our organization ends with it.
    pooled.plan_name, pooled.permitted = "basic", False
    await merchant.tick()
    await until(two_stores, "SELECT 1 FROM devstore_transfers WHERE state = 'TRANSFERRED'")
    (mail,) = await until(
        two_stores,
        "SELECT recipient FROM outbound_mail WHERE event = 'dev_store_transferred'",
    )
    assert mail["recipient"] == "ann@example.com"
    # The deal that sells the store is told, and its item is closed by nobody's hand (rules/marketplace#escrow).
    await until(two_stores, "SELECT 1 FROM deal_events WHERE deal_id = 'deal_sold'")
    assert await handed_over(two_stores, "sold") == ["The store"]
    await until(two_stores, "SELECT 1 FROM integration_connections WHERE refused_at IS NOT NULL")
    last = await asked()
    assert (last.status_code, last.json()["code"]) == (409, "already_transferred")
    cockpit = await merchant.cockpit()
    assert cockpit["devStore"]["state"] == "TRANSFERRED"
    assert (await merchant.milestone("foundation.audit"))["state"] != "pending"
