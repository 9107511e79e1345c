import asyncio
import json
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from tests.http.people import SignUp, add_member
from tests.timing import until
from tolsey.http.app import create_app
from tolsey.http.clients.vectors import VectorStoreFailed
from tolsey.http.files.documents import CHUNK_BYTES, in_chunks, of_store
from tolsey.http.people import auth, organizations
from tolsey.http.stores import exports
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.commerce import stores as store_rows
from tolsey.storage.commerce.stores import salt_of
from tolsey.storage.database import Database
from tolsey.storage.reports.pool import Reports

EXPORTS = 20
"""More than the service has connections."""
WAITING = """
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND query LIKE '%commerce_products%') >= 4
FROM pg_stat_activity WHERE datname = current_database()
"""


async def test_a_store_is_opened_read_and_listed(
    sign_up: SignUp, database: Database, service: Service
) -> None:
    ann = await sign_up()
    made = await ann.store("Corner shop")
    assert made.status_code == 201
    store = made.json()
    assert store["organizationId"] == ann.organization_id
    assert (await ann.browser.get(f"/api/stores/{store['id']}")).json() == store
    assert (await ann.browser.get("/api/stores")).json() == {"items": [store], "nextCursor": None}
    salt = await salt_of(database, service.vault, store["id"], "first.myshopify.com")
    assert salt is not None
    assert len(salt) == 32


async def test_two_at_once_on_a_free_plan_open_one(sign_up: SignUp) -> None:
    ann = await sign_up()
    answers = await asyncio.gather(*(ann.store(f"Shop {number}") for number in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 402, 402, 402]
    refused = next(answer for answer in answers if answer.status_code == 402).json()
    assert refused["code"] == "store_limit"
    assert refused["plan"] == "pro"
    assert len((await ann.browser.get("/api/stores")).json()["items"]) == 1


async def test_a_deleted_store_takes_its_memory_along_and_frees_its_place(
    sign_up: SignUp, database: Database
) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    for namespace in (store_id, f"messages:{store_id}", f"facts:store:{store_id}", "kept"):
        await database.execute(
            "INSERT INTO vectors (namespace, id, embedding) VALUES ($1, 'v', '[1]')", namespace
        )
    assert (await ann.browser.delete(f"/api/stores/{store_id}")).status_code == 204
    left = await database.fetch("SELECT namespace FROM vectors")
    assert [row["namespace"] for row in left] == ["kept"]
    assert (await ann.browser.get(f"/api/stores/{store_id}")).status_code == 404
    assert (await ann.browser.delete(f"/api/stores/{store_id}")).status_code == 404
    assert (await ann.store()).status_code == 201
    events = await database.fetch("SELECT event FROM audit_log WHERE subject = $1", store_id)
    assert [row["event"] for row in events] == ["store.created", "store.deleted"]


class TestWithoutTheVectorStore:
    @pytest.fixture
    def edge(self, service: Service) -> Edge:
        class Away:
            async def purge(self, namespaces: Any) -> None:
                del namespaces
                raise VectorStoreFailed("ConnectError")

            async def count(self, namespaces: Any) -> int:
                del namespaces
                raise VectorStoreFailed("ConnectError")

        away = replace(service, vectors=Away())
        return create_app(
            away, [auth.routes, organizations.routes, stores.routes, exports.routes], {}
        )

    async def test_a_store_whose_memory_cannot_be_purged_stays(self, sign_up: SignUp) -> None:
        ann = await sign_up()
        path = f"/api/stores/{(await ann.store()).json()['id']}"
        response = await ann.browser.delete(path)
        assert (response.status_code, response.json()["code"]) == (503, "vector_purge_failed")
        assert response.headers["retry-after"] == "5"
        assert (await ann.browser.get(path)).status_code == 200

    async def test_what_cannot_be_counted_is_unavailable(self, sign_up: SignUp) -> None:
        ann = await sign_up()
        response = await ann.browser.get(f"/api/organizations/{ann.organization_id}/memory/metrics")
        assert (response.status_code, response.json()["code"]) == (503, "unavailable")


async def test_a_member_reads_and_does_not_delete(sign_up: SignUp, database: Database) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    path = f"/api/stores/{(await ann.store()).json()['id']}"
    await add_member(database, ann.organization_id, bob.email, "member")
    assert (await bob.browser.get(path)).status_code == 200
    assert (await bob.browser.delete(path)).status_code == 403
    assert (await bob.browser.get(f"{path}/export")).status_code == 403
    foreign = {"organizationId": ann.organization_id, "name": "x"}
    assert (await bob.browser.post("/api/stores", json=foreign)).status_code == 403


async def test_a_store_that_was_never_connected_says_so(sign_up: SignUp) -> None:
    ann = await sign_up()
    path = f"/api/stores/{(await ann.store()).json()['id']}/integrations"
    assert (await ann.browser.get(f"{path}/commerce")).json() == {
        "provider": "commerce",
        "shopDomain": None,
        "status": None,
        "scopes": [],
        "scopesKnown": False,
        "tokenState": "never",
        "tokenKind": None,
        "connectedAt": None,
        "uninstalledAt": None,
    }
    assert (await ann.browser.get(f"{path}/other")).status_code == 404


async def test_exports_that_the_database_keeps_waiting_keep_nobody_else_waiting(
    sign_up: SignUp, database: Database, database_url: str
) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    slow, watching = [await asyncpg.connect(database_url) for _ in range(2)]
    try:
        writing = slow.transaction()
        await writing.start()
        await slow.execute("LOCK TABLE commerce_products IN ACCESS EXCLUSIVE MODE")
        exporting = asyncio.gather(
            *(ann.browser.get(f"/api/stores/{store_id}/export") for _ in range(EXPORTS))
        )
        await until(lambda: watching.fetchval(WAITING))
        for _ in range(3):
            assert (await ann.browser.get("/api/stores")).status_code == 200
        await writing.rollback()
        answers = await exporting
    finally:
        await watching.close()
        await slow.close()
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["store"]["id"] == store_id for answer in answers)


async def test_an_export_holds_every_row_in_pages(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    await database.execute(
        """
        INSERT INTO commerce_refunds (store_id, refund_id, order_id, amount_minor)
        SELECT $1, number, 1, number FROM generate_series(-1, 1200) AS number
        """,
        store_id,
    )
    response = await ann.browser.get(f"/api/stores/{store_id}/export")
    assert response.status_code == 200
    document = response.json()
    assert document["store"]["id"] == store_id
    assert [refund["refundId"] for refund in document["refunds"]] == list(range(-1, 1201))
    assert "sealedSalt" not in response.text
    assert set(document) >= {"store", "integrations", "orders", "products", "customers"}


async def test_an_export_is_written_in_parts_worth_their_way(
    sign_up: SignUp, database: Database, reports: Reports
) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    await database.execute(
        """
        INSERT INTO commerce_refunds (store_id, refund_id, order_id, amount_minor)
        SELECT $1, number, 1, number FROM generate_series(1, 3000) AS number
        """,
        store_id,
    )
    row = await store_rows.find(database, store_id)
    assert row is not None
    reader = reports.of(ann.organization_id)
    *full, last = [part async for part in in_chunks(of_store(database, reader, row, None))]
    assert len(full) > 1
    assert all(len(part) >= CHUNK_BYTES for part in full)
    assert len(json.loads(b"".join((*full, last)))["refunds"]) == 3000
