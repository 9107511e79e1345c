"""Shops whose app is the merchant's own: the platform may never ask for them, so others open the same requests."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import SECRET, SHOP, Seller, sign_up, signed
from tests.journeys.strangers import deliver, quiet
from tests.journeys.test_compliance import (
    EMAIL,
    OTHER,
    OTHER_SECRET,
    ROUTES,
    WORDS,
    client,
    erased,
    merchant,
    places,
    tell,
)
from tests.journeys.test_customers_wishes import platform  # noqa: F401 - shops that sold nothing
from tolsey.service import Running
from tolsey.storage.database import Database

__all__ = ["merchant"]

GONE = json.dumps({"id": 1, "name": "Demo", "domain": SHOP, "myshopify_domain": SHOP}).encode()


async def uninstall(seller: Seller) -> None:
    answer = await deliver(seller.browser, GONE, signed(GONE, "app/uninstalled"))
    assert (answer.status_code, answer.json()) == (200, {"status": "accepted"})


async def ago(database: Database, days: int) -> None:
    """Let an uninstall have happened so long ago."""
    await database.execute(
        "UPDATE connection_history SET connected_at = connected_at - interval '100 days',"
        " ended_at = now() - $1::interval WHERE ending = 'uninstalled'",
        timedelta(days=days),
    )


async def mails(database: Database, event: str) -> list[str]:
    rows = await database.fetch("SELECT subject FROM outbound_mail WHERE event = $1", event)
    return [row["subject"] for row in rows]


async def test_a_shop_that_nobody_connects_again_is_announced_and_forgotten_after_thirty_days(
    live: Running, merchant: Seller
) -> None:
    database = live.service.database
    await uninstall(merchant)
    await quiet(live)
    # 48 hours later nobody can prove it any more: the secret of the shop's app went with the app.
    raw = json.dumps(ROUTES["redact"]).encode()
    assert (await deliver(merchant.browser, raw, signed(raw, "shop/redact"))).status_code == 401
    assert await mails(database, "connection_broken") == [f"{SHOP} is no longer connected"]
    await ago(database, 22)
    await erased(live)
    assert await mails(database, "shop_erasure_nears") == []
    await ago(database, 24)
    for _ in range(2):
        assert (await erased(live))["shopsLeft"] == 0
    (announced,) = await mails(database, "shop_erasure_nears")
    assert announced.startswith(f"{SHOP}: ")
    assert "commerce_orders.metadata" in await places(database, WORDS)

    await ago(database, 31)
    assert (await erased(live))["shopsLeft"] == 1
    (request,) = await database.fetch("SELECT source, completed_at FROM compliance_requests")
    assert request["source"] == "uninstall"
    assert request["completed_at"] is not None
    assert await places(database, EMAIL, WORDS) == set()
    assert (await erased(live))["shopsLeft"] == 0


async def test_connecting_again_stops_what_an_uninstall_began(
    live: Running, merchant: Seller
) -> None:
    database = live.service.database
    await uninstall(merchant)
    await quiet(live)
    await ago(database, 31)
    (left,) = await database.fetch("SELECT store_id, ended_at FROM connection_history")
    assert (await merchant.connect()).status_code == 200
    await quiet(live)
    assert (await erased(live))["shopsLeft"] == 0
    assert await database.fetch("SELECT FROM compliance_requests") == []

    # It was opened a moment before the shop came back: the store itself spares what lives.
    await database.execute(
        """
        INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys,
            received_at, pending_steps, source)
        VALUES ('req_1', 'shop/redact', $2, 'd', 'b', ARRAY[$1], ARRAY[$1], now(), '{}', 'uninstall')
        """,
        left["store_id"],
        SHOP,
    )
    assert (await erased(live))["requestsFailed"] == 0
    assert await database.fetch("SELECT FROM compliance_requests") == []
    path = f"/api/stores/{merchant.store_id}/integrations/commerce"
    assert (await merchant.browser.get(path)).json()["status"] == "active"
    assert "commerce_orders.metadata" in await places(database, WORDS)


async def test_a_shop_that_is_connected_is_not_forgotten_on_the_word_of_its_own_app(
    live: Running, merchant: Seller
) -> None:
    raw = json.dumps(ROUTES["redact"]).encode()
    assert (await deliver(merchant.browser, raw, signed(raw, "shop/redact"))).status_code == 200
    assert (await erased(live))["requestsFailed"] == 0
    assert await live.service.database.fetch("SELECT FROM compliance_requests") == []
    path = f"/api/stores/{merchant.store_id}/integrations/commerce"
    assert (await merchant.browser.get(path)).json()["status"] == "active"
    assert "commerce_orders.metadata" in await places(live.service.database, WORDS)


async def test_the_shop_that_a_store_left_is_forgotten_and_the_one_it_went_to_is_not(
    live: Running, merchant: Seller
) -> None:
    database = live.service.database
    await uninstall(merchant)
    await merchant.connect(OTHER, OTHER_SECRET)
    await quiet(live)
    await tell(merchant.browser, OTHER, OTHER_SECRET, tags="stays")
    fact = f"/api/stores/{merchant.store_id}/memory/facts/delivery"
    told = await merchant.browser.put(fact, json={"value": "by bicycle"})
    assert told.status_code == 200, told.text
    await ago(database, 31)
    assert (await erased(live))["shopsLeft"] == 1
    assert await places(database, WORDS) == set()
    (kept,) = await database.fetch("SELECT value FROM facts")
    assert "by bicycle" in kept["value"]
    (order,) = (await merchant.browser.get(f"/api/stores/{merchant.store_id}/export")).json()[
        "orders"
    ]
    assert order["metadata"]["tags"] == "stays"
    assert order["customerHash"].startswith("s1:")


@pytest.mark.parametrize("route", ["data-request", "customer-redact"])
async def test_a_shops_own_app_opens_requests_for_the_stores_that_its_secret_proves(
    live: Running, seller: Seller, operator: httpx.AsyncClient, route: str
) -> None:
    await seller.connect()
    async with client(live) as another:
        # Of another app of the same shop.
        somebodys_secret = "shpss_" + 32 * "0"
        second = await sign_up(another, "second@example.com")
        await second.connect()
        await live.service.database.execute(
            "UPDATE integration_connections SET metadata = metadata - 'clientSecretEncrypted'"
            " WHERE store_id = $1",
            second.store_id,
        )
        await quiet(live)
    topic = {"data-request": "customers/data_request", "customer-redact": "customers/redact"}[route]
    raw = json.dumps(ROUTES[route]).encode()
    headers = signed(raw, topic)
    forged = signed(raw, topic, secret=somebodys_secret)
    assert (await deliver(seller.browser, raw, forged)).status_code == 401
    taken = await deliver(seller.browser, raw, headers)
    assert (taken.status_code, taken.json()) == (200, {"status": "accepted"})
    again = await deliver(seller.browser, raw, headers)
    assert (again.status_code, again.json()) == (200, {"status": "duplicate"})
    (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
    assert (request["topic"], request["source"]) == (topic, "shop_app")
    assert request["stores"] == [seller.store_id]
    # What is not about this very shop, or of another shape, is a delivery like any that nobody wants.
    elsewhere = json.dumps({**ROUTES[route], "shop_domain": OTHER}).encode()
    for body in (elsewhere, b'{"shop_id":1}'):
        ignored = await deliver(seller.browser, body, signed(body, topic))
        assert (ignored.status_code, ignored.json()) == (200, {"status": "accepted"})
    assert len((await operator.get("/api/admin/compliance")).json()["items"]) == 1
    assert await places(live.service.database, EMAIL) == set()


async def test_words_that_name_a_forgotten_customer_go_and_others_stay(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    await seller.connect()
    await quiet(live)
    facts = f"/api/stores/{seller.store_id}/memory"
    told: dict[str, Any] = {"dora": f"Ask {EMAIL} first.", "voice": "Dry, see shop@example.com"}
    for key, value in told.items():
        await seller.browser.put(f"{facts}/facts/{key}", json={"value": value})
    for text in (f"<{EMAIL}> is a friend", "Parcels leave on Mondays."):
        await seller.browser.post(f"{facts}/messages", json={"text": text})
    other = {"id": 8, "email": "friend@example.com"}
    await tell(
        seller.browser, SHOP, SECRET, customer=other, email=other["email"], tags=f"of {EMAIL}"
    )

    path = f"/api/stores/{seller.store_id}/privacy"
    await seller.post(path, email=EMAIL, action="erase", confirmed=True)
    await erased(live)
    assert await places(database, EMAIL) == set()
    kept = (await seller.browser.get(f"{facts}/facts")).json()["items"]
    assert [one["key"] for one in kept] == ["voice"]
    said = (await seller.browser.get(f"{facts}/messages")).json()["items"]
    assert [one["text"] for one in said] == ["Parcels leave on Mondays."]
    (order,) = await database.fetch(
        "SELECT customer_hash, metadata::text AS said FROM commerce_orders"
    )
    assert order["said"] == "{}"
    assert order["customer_hash"] is not None  # it is somebody else's
    (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
    (leg,) = [one for one in request["legs"] if one["leg"] == "mentions"]
    assert (leg["rowsBefore"], leg["rowsAfter"]) == (3, 0)
