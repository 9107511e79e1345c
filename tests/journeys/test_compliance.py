"""A shop's platform asks for a person's data, or to forget a person or a whole shop."""

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.journeys.canary.spelling import columns, found_in
from tests.journeys.conftest import EVENTS, SECRET, SHOP, Seller, order_body, sign_up, signed
from tests.journeys.neighbours import browsing, settled
from tests.journeys.strangers import deliver, quiet
from tolsey.actors.job.messages import RunNow, job
from tolsey.runtime.ids import new_id
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database

OTHER, OTHER_SECRET = "second.myshopify.com", "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"
PLATFORM_SECRET = "platform-secret-of-the-service"
ROUTES = {
    "redact": {"shop_id": 1, "shop_domain": SHOP},
    "data-request": {
        "shop_id": 1,
        "shop_domain": SHOP,
        "customer": {"id": 7, "email": "dora.canary@example.com", "phone": "+15550100"},
        "orders_requested": [1],
        "data_request": {"id": 9},
    },
    "customer-redact": {
        "shop_id": 1,
        "shop_domain": SHOP,
        "customer": {"id": 7, "email": "dora.canary@example.com"},
        "orders_to_redact": [1],
    },
}
EMAIL, WORDS = "dora.canary@example.com", "Dora Canary likes the blue door"
KEPT_BESIDE = """
WITH operations AS (
    INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest, state,
        created_at, finished_at)
    SELECT $1, subject, 'usr_1', 'client', 'edit_order_note', subject, '', 'applied', now(), now()
    FROM unnest(ARRAY['order/1', 'order/2', 'product/3/4']) AS subject
)
INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, created_at)
SELECT id, id, 1, 'store', $1, 'N', jsonb_build_object('customer_hash', whose, 'shop_domain', 'corner'), 1, '', now()
FROM (VALUES ('dl_1', $2), ('dl_2', 's1:other')) AS letters (id, whose)
"""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"commerce_client_secret": PLATFORM_SECRET})


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    """Two shops that sold nothing before they were connected."""
    made = Platform()
    for shop, secret in ((SHOP, SECRET), (OTHER, OTHER_SECRET)):
        made.add_shop(ShopSpec(domain=shop, client_id="client-1", client_secret=secret))
    async with made.serve():
        yield made


async def asked(
    browser: httpx.AsyncClient, route: str, body: Any, secret: str = PLATFORM_SECRET, **more: Any
) -> httpx.Response:
    raw = json.dumps(body).encode()
    headers = signed(raw, route, secret=secret, **more)
    return await browser.post(f"/api/webhooks/commerce/{route}", content=raw, headers=headers)


async def tell(browser: httpx.AsyncClient, shop: str, secret: str, **order: Any) -> None:
    body = {"customer": {"id": 7, "email": EMAIL}, "email": EMAIL, "tags": WORDS, **order}
    raw = order_body(1, **body)
    assert (await deliver(browser, raw, signed(raw, shop=shop, secret=secret))).status_code == 200
    buyer = json.dumps({"id": 7, "email": EMAIL, "updated_at": "2026-07-01T10:00:00Z"}).encode()
    headers = signed(buyer, "customers/create", shop=shop, secret=secret)
    assert (await deliver(browser, buyer, headers)).status_code == 200


@pytest.fixture
async def merchant(live: Running, seller: Seller) -> Seller:
    """Someone whose store was connected to a shop and told of a buyer there."""
    await seller.connect()
    await quiet(live)
    await tell(seller.browser, SHOP, SECRET)
    return seller


async def erased(live: Running) -> dict[str, Any]:
    """Run the job, and answer its counters."""
    at = live.service.clock()
    run = await live.service.runtime.ask(job("gdpr-erasure"), RunNow(new_id("run"), at))
    assert run.status == "completed", run
    outcome: dict[str, Any] = json.loads(run.outcome or "{}")
    return outcome


async def places(database: Database, *canaries: str) -> set[str]:
    """Look through every column of every table for any form of what was planted."""
    return {
        place.removeprefix("table ")
        async for place, said in columns(database)
        if found_in(said, *canaries)
    }


async def test_each_route_takes_its_own_body_under_the_platforms_secret_alone(
    seller: Seller, operator: httpx.AsyncClient
) -> None:
    assert (await seller.connect()).status_code == 200
    for route, body in ROUTES.items():
        assert (await asked(seller.browser, route, body, SECRET)).status_code == 401
        for other in ROUTES.keys() - {route}:
            refused = await asked(seller.browser, route, ROUTES[other])
            assert (refused.status_code, refused.json()["code"]) == (400, "malformed_payload")
        more = {**body, "customers": []}
        assert (await asked(seller.browser, route, more)).status_code == 400
    assert (await operator.get("/api/admin/compliance")).json()["items"] == []

    for route, body in ROUTES.items():
        taken = await asked(seller.browser, route, body, delivery_id=f"one-{route}")
        assert (taken.status_code, taken.json()) == (200, {"status": "accepted"})
        # Again by the platform, and again under another id: it is one request.
        for id in (f"one-{route}", f"two-{route}"):
            again = await asked(seller.browser, route, body, delivery_id=id)
            assert (again.status_code, again.json()) == (200, {"status": "duplicate"})
    kept = (await operator.get("/api/admin/compliance")).json()["items"]
    assert [one["stores"] for one in kept] == [[seller.store_id]] * 3


async def test_a_shop_that_nobody_knows_is_kept_with_no_store(
    live: Running, browser: httpx.AsyncClient, operator: httpx.AsyncClient
) -> None:
    body = {"shop_id": 3, "shop_domain": "nobody.myshopify.com"}
    assert (await asked(browser, "redact", body)).status_code == 200
    outcome = await erased(live)
    assert (outcome["requestsCompleted"], outcome["awaitingOperator"]) == (1, 1)
    (kept,) = (await operator.get("/api/admin/compliance")).json()["items"]
    assert kept["stores"] == kept["legs"] == []


async def test_a_shop_is_forgotten_and_the_one_the_store_went_to_is_not(
    live: Running, merchant: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    assert (await merchant.connect(OTHER, OTHER_SECRET)).status_code == 200
    await quiet(live)
    kept = {"email": "kept@example.com", "customer": {"id": 8, "email": "kept@example.com"}}
    await tell(merchant.browser, OTHER, OTHER_SECRET, **kept, tags="stays")
    assert "commerce_orders.metadata" in await places(database, WORDS)

    assert (await asked(merchant.browser, "redact", ROUTES["redact"])).status_code == 200
    outcome = await erased(live)
    assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (1, 0)
    (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
    legs = {one["leg"]: one for one in request["legs"]}
    assert legs.keys() == {
        *("credentials", "vectors", "webhook-archive", "order-freetext", "copies"),
        "commerce-identity-hashes",
    }
    assert (legs["order-freetext"]["rowsBefore"], legs["webhook-archive"]["rowsBefore"]) == (1, 2)
    assert {one["rowsAfter"] for one in legs.values()} == {0}
    assert request["completedAt"] is not None
    assert request["handledAt"] is None
    assert request["pendingSteps"] == ["commerce-history", "store-record"]
    assert await places(database, EMAIL, WORDS) == set()

    # The shop that the store is connected to now has its connection, its salt and its orders.
    path = f"/api/stores/{merchant.store_id}"
    assert (await merchant.browser.get(f"{path}/integrations/commerce")).json()[
        "status"
    ] == "active"
    (order,) = (await merchant.browser.get(f"{path}/export")).json()["orders"]
    assert order["metadata"]["tags"] == "stays"
    assert order["customerHash"].startswith("s1:")
    salts = await database.fetch(
        "SELECT shop_domain, sealed_salt = '' AS gone FROM shops_of_stores ORDER BY 1"
    )
    assert [tuple(row.values()) for row in salts] == [(SHOP, True), (OTHER, False)]
    row = await database.fetchrow("SELECT sealed_salt FROM stores")
    assert row is not None
    assert row["sealed_salt"] == ""

    # An operator's word carries the rest out; none closes a request of which something is open.
    admin = f"/api/admin/compliance/{request['id']}"
    why = {"reason": "Asked for by the shop."}
    early = await operator.post(f"{admin}/handled", json=why)
    assert (early.status_code, early.json()["code"]) == (409, "steps_open")
    for step in request["pendingSteps"]:
        assert (await operator.post(f"{admin}/steps/{step}/done", json=why)).status_code == 202
    await erased(live)
    left = await database.fetch("SELECT DISTINCT store_id FROM commerce_orders")
    assert [row["store_id"] for row in left] == [f"{merchant.store_id}@{OTHER}"]
    closed = await operator.post(f"{admin}/handled", json=why)
    assert closed.status_code == 200, closed.text
    assert closed.json()["handledAt"] is not None
    assert (await erased(live))["awaitingOperator"] == 0


async def test_a_forgotten_shop_takes_no_old_delivery_and_comes_back_as_a_new_one(
    live: Running, merchant: Seller
) -> None:
    database = live.service.database
    (before,) = await database.fetch("SELECT customer_hash FROM commerce_orders")
    await asked(merchant.browser, "redact", ROUTES["redact"])
    await erased(live)
    raw = order_body(1, tags=WORDS)
    assert (await deliver(merchant.browser, raw, signed(raw))).status_code == 401
    assert await places(database, WORDS) == set()

    assert (await merchant.connect()).status_code == 200
    await quiet(live)
    await tell(merchant.browser, SHOP, SECRET)
    path = f"/api/stores/{merchant.store_id}/export"
    (order,) = (await merchant.browser.get(path)).json()["orders"]
    assert order["customerHash"].startswith("s1:")
    assert order["customerHash"] != before["customer_hash"]


async def test_a_salt_destroyed_through_one_process_makes_no_pseudonym_in_another(
    pair: tuple[Running, Running],
) -> None:
    database = pair[0].service.database
    hashes = "SELECT DISTINCT customer_hash FROM commerce_orders WHERE customer_hash IS NOT NULL"
    async with browsing(pair[0]) as browser, browsing(pair[1]) as other:
        seller = await sign_up(browser)
        await seller.connect()
        await settled(pair[0])
        for process in (browser, other):  # each has the key of the pseudonyms in memory now
            await tell(process, SHOP, SECRET)
        (before,) = await database.fetch(hashes)
        await asked(browser, "redact", ROUTES["redact"])
        await erased(pair[0])
        assert (await seller.connect()).status_code == 200
        await settled(pair[0])
        for number, process in enumerate((other, browser)):
            raw = order_body(10 + number, customer={"id": 7, "email": EMAIL}, email=EMAIL)
            assert (await process.post(EVENTS, content=raw, headers=signed(raw))).is_success
        await settled(pair[0])
        anew = [row["customer_hash"] for row in await database.fetch(hashes)]
    assert len(anew) == 2
    assert before["customer_hash"] in anew  # what is left of before, linked to nobody
    told = "SELECT customer_hash FROM commerce_orders WHERE order_id >= 10"
    assert before["customer_hash"] not in {
        row["customer_hash"] for row in await database.fetch(told)
    }


async def test_a_customer_is_forgotten_and_what_is_delivered_again_creates_nothing(
    live: Running, merchant: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    (order,) = await database.fetch("SELECT customer_hash FROM commerce_orders")
    known = order["customer_hash"]
    assert known.startswith("s1:")
    # What agents did to another's order, and a message given up that names another, are not the customer's.
    await database.execute(KEPT_BESIDE, merchant.store_id, known)
    answer = await asked(merchant.browser, "customer-redact", ROUTES["customer-redact"])
    assert answer.status_code == 200
    await erased(live)
    left = await database.fetch(
        "SELECT subject AS what FROM agent_operations UNION ALL SELECT id FROM dead_letters"
    )
    assert sorted(row["what"] for row in left) == ["dl_2", "order/2", "product/3/4"]
    await tell(merchant.browser, SHOP, SECRET)  # as it was, under ids of its own
    rows = await database.fetch("SELECT customer_hash, metadata::text AS said FROM commerce_orders")
    assert [tuple(row.values()) for row in rows] == [(None, "{}")]
    await erased(live)
    assert await places(database, EMAIL, WORDS) == set()
    assert await places(database, known) == {
        "customer_redactions.email_hash",
        "customer_redactions.subject_key",
    }
    (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
    assert request["completedAt"] is not None
    assert {one["rowsAfter"] for one in request["legs"]} == {0}


async def test_what_still_names_a_customer_by_the_older_digest_is_forgotten_with_them(
    live: Running, merchant: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    digest = hashlib.sha256(EMAIL.encode()).hexdigest()
    await database.execute("UPDATE commerce_orders SET customer_hash = $1", digest)
    await database.execute("UPDATE commerce_customers SET email_hash = $1", digest)
    assert len(await places(database, EMAIL)) == 2

    await asked(merchant.browser, "customer-redact", ROUTES["customer-redact"])
    assert (await erased(live))["requestsFailed"] == 0
    rows = await database.fetch("SELECT customer_hash, metadata::text AS said FROM commerce_orders")
    assert [tuple(row.values()) for row in rows] == [(None, "{}")]
    assert await places(database, EMAIL, WORDS) == set()
    admin = "/api/integrations/commerce/rehash-identities"
    assert (await operator.get(admin)).json()["complete"] is True


async def test_stores_of_one_shop_forget_it_each_by_itself(
    live: Running, settings: Settings, seller: Seller, operator: httpx.AsyncClient
) -> None:
    await seller.connect()
    async with client(live) as another:
        second = await sign_up(another, "second@example.com")
        assert (await second.connect()).status_code == 200
        await quiet(live)
        await tell(another, SHOP, SECRET)
        known = await live.service.database.fetch("SELECT customer_hash FROM commerce_orders")
        assert len({row["customer_hash"] for row in known}) == 2
        await asked(another, "redact", ROUTES["redact"])
        await erased(live)
        for one in (seller, second):
            path = f"/api/stores/{one.store_id}/integrations/commerce"
            assert (await one.browser.get(path)).json()["status"] == "revoked"
    (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
    assert sorted(request["stores"]) == sorted([seller.store_id, second.store_id])
    assert len(request["legs"]) == 12
    assert await places(live.service.database, EMAIL, WORDS) == set()


async def test_memory_that_cannot_be_emptied_is_told_and_tried_again(
    settings: Settings, database_url: str
) -> None:
    away = settings.model_copy(update={"vector_url": "http://127.0.0.1:9", "vector_token": "token"})
    with capture_logs() as logs:
        async with running(away, timers=False, poll_seconds=0.1) as live, client(live) as browser:
            seller = await sign_up(browser)
            await seller.connect()
            assert (await asked(browser, "redact", ROUTES["redact"])).status_code == 200
            outcome = await erased(live)
            rows = await live.service.database.fetch("SELECT completed_at FROM compliance_requests")
    assert "commerce.gdpr.shop_redact.vector_purge_failed" in {one["event"] for one in logs}
    assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (0, 1)
    assert [row["completed_at"] for row in rows] == [None]


async def test_nothing_is_erased_that_could_not_be_listed_outside_the_database(
    live: Running, settings: Settings, merchant: Seller
) -> None:
    database = live.service.database
    await asked(merchant.browser, "redact", ROUTES["redact"])
    in_the_way = settings.data_dir / "objects" / "erasures"
    in_the_way.write_text("")
    outcome = await erased(live)
    assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (0, 1)
    assert "commerce_orders.metadata" in await places(database, WORDS)

    in_the_way.unlink()
    outcome = await erased(live)
    assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (1, 0)
    assert await places(database, EMAIL, WORDS) == set()
    (listed,) = (in_the_way / "request").iterdir()
    assert not found_in(listed.read_bytes(), EMAIL, WORDS)
    entry = json.loads(listed.read_text())
    assert entry["request"]["completed_at"] is not None


async def test_what_a_deleted_store_had_goes_after_a_day(live: Running, merchant: Seller) -> None:
    database = live.service.database
    assert (await merchant.browser.delete(f"/api/stores/{merchant.store_id}")).status_code == 204
    assert (await erased(live))["storesErased"] == 0
    await database.execute("UPDATE stores SET deleted_at = now() - interval '2 days'")
    assert (await erased(live))["storesErased"] == 1
    assert await places(database, EMAIL, WORDS) == set()
    for table in ("commerce_orders", "commerce_buyers", "commerce_sales", "shops_of_stores"):
        assert await database.fetch(f"SELECT FROM {table}") == []
    assert (await erased(live))["storesErased"] == 0


async def test_a_store_whose_first_shop_was_forgotten_is_erased_when_it_is_deleted(
    live: Running, seller: Seller
) -> None:
    database = live.service.database
    await seller.connect()
    await quiet(live)
    await asked(seller.browser, "redact", ROUTES["redact"])
    await erased(live)
    assert (await seller.connect(OTHER, OTHER_SECRET)).status_code == 200
    await quiet(live)
    await tell(seller.browser, OTHER, OTHER_SECRET)
    assert (await seller.browser.delete(f"/api/stores/{seller.store_id}")).status_code == 204
    await database.execute("UPDATE stores SET deleted_at = now() - interval '2 days'")
    assert (await erased(live))["storesErased"] == 1
    assert await places(database, EMAIL, WORDS) == set()
    assert await database.fetch("SELECT FROM commerce_orders") == []


async def test_who_asked_to_go_is_gone_after_thirty_days_with_what_they_owned_alone(
    live: Running, merchant: Seller
) -> None:
    database = live.service.database
    assert (await merchant.browser.delete("/api/account")).status_code == 202
    assert (await erased(live))["usersErased"] == 0
    await database.execute(
        "UPDATE users SET deletion_requested_at = deletion_requested_at - interval '31 days'"
    )
    assert (await erased(live))["usersErased"] == 1
    assert await places(database, "merchant@example.com") == set()
    (user,) = await database.fetch("SELECT email, password_hash FROM users")
    assert (user["email"].endswith("@deleted.invalid"), user["password_hash"]) == (True, "")
    # What people did stays on record, under an id that leads to nobody.
    assert await database.fetch("SELECT FROM audit_log WHERE event = 'user.deletion_requested'")
    await database.execute("UPDATE stores SET deleted_at = deleted_at - interval '2 days'")
    assert (await erased(live))["storesErased"] == 1
    assert await places(database, EMAIL, WORDS) == set()
    await database.execute("UPDATE organizations SET deleted_at = deleted_at - interval '366 days'")
    await erased(live)
    assert await places(database, "A company") == set()


async def test_an_obligation_that_nobody_closed_in_time_is_told(
    live: Running, browser: httpx.AsyncClient, operator: httpx.AsyncClient
) -> None:
    await asked(browser, "redact", ROUTES["redact"])
    await live.service.database.execute(
        "UPDATE compliance_requests SET received_at = now() - interval '31 days'"
    )
    with capture_logs() as logs:
        outcome = await erased(live)
    assert (outcome["awaitingOperator"], outcome["overdue"]) == (1, 1)
    assert "gdpr.compliance_request.overdue" in {one["event"] for one in logs}
    (kept,) = (await operator.get("/api/admin/compliance?overdue=true")).json()["items"]
    assert kept["overdue"] is True


def client(live: Running) -> httpx.AsyncClient:
    base = live.service.settings.base_url
    transport = httpx.ASGITransport(live.app)
    return httpx.AsyncClient(transport=transport, base_url=base, headers={"Origin": base})
