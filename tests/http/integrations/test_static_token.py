"""A merchant connects a store with the token of an app that was made in the shop's own admin."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.http.integrations.test_custom_app import CUSTOM_APP, SHOP, connect, kept, subscribed
from tests.http.people import Clock, Person, SignUp
from tests.timing import until
from tolsey.actors.refusals import Unavailable
from tolsey.actors.store.connection.messages import RevokeGrant, UseToken
from tolsey.actors.store.messages import store
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.platform import Platform
from tolsey.storage.database import Database

CALLS = "SELECT FROM outbox WHERE name LIKE '%CheckGrant'"
YEARS = 20 * 365 * 24 * 3600


async def pasted(person: Person, platform: Platform, **fields: Any) -> tuple[str, httpx.Response]:
    """Connect with a token that the shop's own admin gave out."""
    token = platform.shop(SHOP).issue_token(platform.now(), YEARS).text
    body = {"shopDomain": SHOP, "accessToken": token, "clientSecret": "secret", **fields}
    body["storeId"] = (await person.store()).json()["id"]
    return body["storeId"], await person.browser.post(CUSTOM_APP, json=body)


async def test_a_static_token_is_used_for_years_and_never_renewed(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock, database: Database
) -> None:
    store_id, answer = await pasted(await sign_up(), platform)

    assert answer.status_code == 200, answer.text
    connection = answer.json()["connection"]
    assert (connection["tokenKind"], connection["tokenState"]) == ("static", "ok")
    assert connection["scopes"] == ["read_orders", "read_products"]
    assert "shpat_" not in answer.text
    topics = await subscribed(runtime, store_id, "products/create")
    assert topics["orders/create"] in {"ok", "created"}
    clock.advance(timedelta(days=3000))
    token = await runtime.ask(store(store_id), UseToken(clock()))
    assert token.shop_domain == SHOP
    assert platform.grants == 0
    (row,) = await kept(database)
    assert row["client_id"] is None
    assert row["access_token"].startswith("v1.")


async def test_a_static_token_that_the_platform_knows_no_more_is_unavailable_until_another_is_pasted(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock
) -> None:
    ann = await sign_up()
    store_id, _ = await pasted(ann, platform)
    token = await runtime.ask(store(store_id), UseToken(clock()))
    for dead in (token.access_token, None):
        with pytest.raises(Unavailable) as caught:
            await runtime.ask(store(store_id), UseToken(clock(), dead))
        assert caught.value.code == "token_unavailable"
    assert platform.grants == 0
    _, again = await connect(ann, storeId=store_id)
    shown = again.json()["connection"]
    assert (shown["tokenKind"], shown["tokenState"]) == ("grant", "ok")
    gone = await ann.browser.delete(CUSTOM_APP, params={"storeId": store_id})
    assert gone.json()["connection"]["tokenKind"] is None


@pytest.mark.parametrize("honoured", [True, False])
async def test_a_late_farewell_ends_a_static_token_that_the_platform_knows_no_more(
    sign_up: SignUp,
    platform: Platform,
    runtime: Runtime,
    clock: Clock,
    database: Database,
    *,
    honoured: bool,
) -> None:
    ann = await sign_up()
    store_id, _ = await pasted(ann, platform)
    await subscribed(runtime, store_id, "products/create")
    if not honoured:
        platform.revoke_tokens(SHOP)
    before = clock() - timedelta(hours=1)
    await runtime.ask(
        store(store_id), RevokeGrant(shop_domain=SHOP, happened_at=before, at=clock())
    )

    async def is_done() -> bool:
        return not (runtime.admin.effects_in_flight or await database.fetch(CALLS))

    await until(is_done)
    shown = await ann.browser.get(f"/api/stores/{store_id}/integrations/commerce")
    assert shown.json()["status"] == ("active" if honoured else "revoked")


async def test_a_token_that_the_shop_does_not_know_is_refused_and_nothing_stored(
    sign_up: SignUp, platform: Platform, database: Database
) -> None:
    _, answer = await pasted(await sign_up(), platform, accessToken="shpat_made_up")
    assert (answer.status_code, answer.json()["code"]) == (422, "commerce_rejected")
    assert await kept(database) == []


@pytest.mark.parametrize("also", [{"clientId": "app"}, {"accessToken": None}])
async def test_an_app_is_of_one_kind(
    sign_up: SignUp, platform: Platform, database: Database, also: dict[str, Any]
) -> None:
    _, answer = await pasted(await sign_up(), platform, **also)
    assert answer.status_code == 422
    assert "Send clientId with clientSecret" in answer.text
    assert await kept(database) == []


async def test_the_plans_own_name_is_known_from_the_connection_on(
    sign_up: SignUp, platform: Platform, database: Database
) -> None:
    shop = platform.shop(SHOP)
    shop.plan_name = "partner_test"
    ann = await sign_up()
    store_id, _ = await connect(ann)
    read = "SELECT plan_name FROM store_shops"
    assert [row["plan_name"] for row in await database.fetch(read)] == ["partner_test"]
    shop.plan_name = "basic"
    await connect(ann, storeId=store_id)
    assert [row["plan_name"] for row in await database.fetch(read)] == ["basic"]
