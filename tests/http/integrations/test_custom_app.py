"""A merchant connects a store with their own app, over real HTTP to the platform."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest
import structlog

from tests.http.people import KEYRING, Clock, Person, SignUp
from tests.timing import until
from tolsey.actors.refusals import Refusal, Unavailable
from tolsey.actors.store.connection.messages import ReadConnection, Token, UseToken
from tolsey.actors.store.deliveries.messages import Delivery, OrderEdited, ScopesChanged
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.messages import store
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES
from tolsey.storage.commerce import connections
from tolsey.storage.database import Database, Row
from tolsey.storage.sealing.sealed import Vault

SHOP = "demo.myshopify.com"
CUSTOM_APP = "/api/integrations/commerce/custom-app"


async def connect(person: Person, **fields: Any) -> tuple[str, httpx.Response]:
    store_id = fields.pop("storeId", None) or (await person.store()).json()["id"]
    body = {"storeId": store_id, "shopDomain": SHOP, "clientId": "app", "clientSecret": "secret"}
    return store_id, await person.browser.post(CUSTOM_APP, json=body | fields)


async def kept(database: Database) -> list[Row]:
    return await database.fetch("SELECT * FROM integration_connections")


async def test_a_merchant_connects_and_is_subscribed_to_what_the_scopes_allow(
    sign_up: SignUp, database: Database, runtime: Runtime
) -> None:
    ann = await sign_up()
    store_id, answer = await connect(ann, shopDomain=" https://DEMO.myshopify.com/admin ")

    assert answer.status_code == 200, answer.text
    connection = answer.json()["connection"]
    assert (connection["shopDomain"], connection["status"]) == (SHOP, "active")
    assert connection["scopes"] == ["read_orders", "read_products"]
    assert connection["tokenState"] == "ok"
    assert "secret" not in answer.text
    (row,) = await kept(database)
    assert row["access_token"].startswith("v1.")
    assert "clientSecretEncrypted" in json.loads(row["metadata"])
    with anyio.fail_after(60):
        while not (view := await runtime.ask(store(store_id), ReadConnection())).subscriptions:  # type: ignore[union-attr]
            await asyncio.sleep(0)
    report = dict(view.subscriptions)  # type: ignore[union-attr]
    assert set(report) == set(TOPICS)
    assert report["orders/create"] in {"ok", "created"}
    assert report["themes/publish"].startswith("missing_scope")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"clientSecret": "guess"}, "invalid_client"),
        ({"shopDomain": "nowhere.myshopify.com"}, "shop_not_found"),
    ],
)
async def test_the_platforms_refusal_is_told_and_nothing_stored(
    sign_up: SignUp, database: Database, wrong: dict[str, str], why: str
) -> None:
    _, answer = await connect(await sign_up(), **wrong)

    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["platformCode"]) == ("commerce_rejected", why)
    assert answer.json()["detail"]
    assert await kept(database) == []


async def test_an_app_that_is_not_installed_is_named(sign_up: SignUp, platform: Platform) -> None:
    platform.shop(SHOP).installed = False
    _, answer = await connect(await sign_up())

    assert answer.json()["platformCode"] == "app_not_installed"


async def test_a_platform_out_of_reach_is_502_and_nothing_stored(
    sign_up: SignUp, platform: Platform, database: Database
) -> None:
    platform.faults.status(500, times=50, on="token")
    _, answer = await connect(await sign_up())

    assert (answer.status_code, answer.json()["code"]) == (502, "commerce_unreachable")
    assert await kept(database) == []


async def test_a_platform_that_throttles_is_503_with_the_time_to_wait(
    sign_up: SignUp, platform: Platform, database: Database
) -> None:
    platform.faults.rate_limit(times=50, retry_after="299.2")
    _, answer = await connect(await sign_up())

    assert (answer.status_code, answer.json()["code"]) == (503, "commerce_throttled")
    assert (answer.json()["retryAfter"], answer.headers["retry-after"]) == (300, "300")
    assert "out of reach" not in answer.json()["detail"]
    assert await kept(database) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shopDomain", "shop.example.com"),
        ("shopDomain", "169.254.169.254"),
        ("clientId", ""),
        ("clientSecret", "two words"),
        ("storeId", "../store"),
    ],
)
async def test_a_misshapen_request_names_its_field(sign_up: SignUp, field: str, value: str) -> None:
    _, answer = await connect(await sign_up(), **{field: value})

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_strangers_store_is_not_there(sign_up: SignUp, database: Database) -> None:
    store_id, _ = await connect(await sign_up("ann@example.com"))
    bob = await sign_up("bob@example.com")
    _, posted = await connect(bob, storeId=store_id)
    deleted = await bob.browser.delete(CUSTOM_APP, params={"storeId": store_id})

    assert (posted.status_code, deleted.status_code) == (404, 404)
    assert (await kept(database))[0]["status"] == "active"


async def test_disconnecting_erases_the_credentials_and_is_not_called_a_refusal(
    sign_up: SignUp, database: Database, runtime: Runtime, clock: Clock
) -> None:
    ann = await sign_up()
    store_id, _ = await connect(ann)
    answer = await ann.browser.delete(CUSTOM_APP, params={"storeId": store_id})
    shown = await ann.browser.get(f"/api/stores/{store_id}/integrations/commerce")

    with pytest.raises(Refusal, match="was disconnected") as refused:
        await runtime.ask(store(store_id), UseToken(clock()))
    assert refused.value.code == "disconnected"
    assert answer.json()["connection"]["status"] == "disconnected"
    assert shown.json()["status"] == "disconnected"
    (row,) = await kept(database)
    assert (row["access_token"], row["client_id"]) == (None, None)
    assert "Secret" not in row["metadata"]


@pytest.mark.parametrize("honoured", [True, False])
async def test_deleting_a_store_ends_its_subscriptions_at_the_platform(
    sign_up: SignUp, database: Database, platform: Platform, runtime: Runtime, honoured: bool
) -> None:
    ann = await sign_up()
    store_id, _ = await connect(ann)
    shop = platform.shop(SHOP)
    await until(lambda: shop.subscriptions and not runtime.admin.effects_in_flight)
    if not honoured:
        platform.rotate_secret(SHOP, "another")
        platform.revoke_tokens(SHOP)
    assert (await ann.browser.delete(f"/api/stores/{store_id}")).status_code == 204

    assert (shop.subscriptions == {}) == honoured
    (row,) = await kept(database)
    assert (row["status"], row["access_token"]) == ("disconnected", None)


async def test_a_store_that_was_never_connected_cannot_be_disconnected(sign_up: SignUp) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    answer = await ann.browser.delete(CUSTOM_APP, params={"storeId": store_id})

    assert answer.status_code == 404


async def test_a_hundred_askers_cause_one_renewal(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock
) -> None:
    store_id, _ = await connect(await sign_up())
    granted = platform.grants
    clock.advance(timedelta(hours=23, minutes=51))

    asked = (runtime.ask(store(store_id), UseToken(clock())) for _ in range(100))
    tokens: list[Token] = await asyncio.gather(*asked)

    assert platform.grants == granted + 1
    assert len({token.access_token for token in tokens}) == 1
    plain = connections.open_token(Vault.from_keys(KEYRING), store_id, tokens[0].access_token)
    assert platform.shop(SHOP).accepts(plain, platform.now())


async def test_a_changed_secret_is_logged_once_and_said_until_the_merchant_reconnects(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock, database: Database
) -> None:
    ann = await sign_up()
    store_id, _ = await connect(ann)
    before = (await kept(database))[0]
    platform.rotate_secret(SHOP, "rotated")
    clock.advance(timedelta(days=2))

    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                await runtime.ask(store(store_id), UseToken(clock()))
            assert caught.value.code == "token_unavailable"
    after = (await kept(database))[0]
    shown = await ann.browser.get(f"/api/stores/{store_id}/integrations/commerce")

    assert [line["event"] for line in logs].count("refresh_rejected") == 1
    assert {**after, "refused_at": None} == dict(before)
    assert shown.json()["tokenState"] == "token_unavailable"

    _, again = await connect(ann, storeId=store_id, clientSecret="rotated")
    assert again.json()["connection"]["tokenState"] == "ok"
    assert (await runtime.ask(store(store_id), UseToken(clock()))).shop_domain == SHOP


async def test_orders_and_subscriptions_are_reached_with_a_new_token_where_the_old_one_died(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock, database: Database
) -> None:
    platform.shop(SHOP).scopes = tuple(one for one in ALL_SCOPES if one != "read_inventory")
    store_id, _ = await connect(await sign_up())
    topics = await subscribed(runtime, store_id, "products/create")
    assert topics["inventory_levels/update"].startswith("missing_scope")
    order = platform.place_order(SHOP, email="jane@doe.example")
    platform.revoke_tokens(SHOP)
    edited = Delivery(id="d-1", topic="orders/edited", shop_domain=SHOP, at=clock())
    await runtime.ask(store(store_id), OrderEdited(edited, order.id, "{}"))
    await until(lambda: database.fetch("SELECT 1 FROM commerce_orders"))

    platform.revoke_tokens(SHOP)
    platform.shop(SHOP).scopes = ALL_SCOPES
    grown = Delivery(id="d-2", topic="app/scopes_update", shop_domain=SHOP, at=clock())
    await runtime.ask(
        store(store_id),
        ScopesChanged(delivery=grown, scopes=ALL_SCOPES, changed_at=clock(), audit="{}"),
    )
    topics = await subscribed(runtime, store_id, "inventory_levels/update")
    assert "token_unavailable" not in topics.values()


async def subscribed(runtime: Runtime, store_id: str, topic: str) -> dict[str, str]:
    """Wait until a topic is subscribed to, and read what became of them all."""

    async def find() -> dict[str, str] | None:
        view = await runtime.ask(store(store_id), ReadConnection())
        topics = dict(view.subscriptions if view else ())
        return topics if topics.get(topic) in {"ok", "created"} else None

    return await until(find)


async def test_an_outage_is_not_a_refusal(
    sign_up: SignUp, platform: Platform, runtime: Runtime, clock: Clock
) -> None:
    store_id, _ = await connect(await sign_up())
    clock.advance(timedelta(days=2))
    platform.faults.status(503, times=50, on="token")
    with pytest.raises(Unavailable) as caught:
        await runtime.ask(store(store_id), UseToken(clock()))
    assert caught.value.code == "commerce_unreachable"

    platform.faults.clear()
    assert (await runtime.ask(store(store_id), UseToken(clock()))).shop_domain == SHOP
