"""Three of the largest tables lie in partitions, as docs/operate/scaling.md 5.2 plans it, and nobody notices."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.journeys.conftest import EVENTS, Seller, order_body, signed
from tests.journeys.strangers import quiet
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database

PARTS = 16
TABLES = {
    # The column or bound of its partitions, and what its key needs beside what it has.
    "commerce_webhook_events": ("HASH (store_id)", ""),
    "commerce_orders": ("HASH (store_id)", ""),
    "audit_log": ("RANGE (created_at)", ", created_at"),
}
INDEXES = "SELECT indexdef AS said FROM pg_indexes WHERE tablename = $1 AND indexname NOT IN (SELECT conname FROM pg_constraint)"
TRIGGERS = "SELECT pg_get_triggerdef(oid) AS said FROM pg_trigger WHERE tgrelid = $1::text::regclass AND NOT tgisinternal"
KEY = """
SELECT string_agg(a.attname, ', ' ORDER BY array_position(c.conkey, a.attnum)) AS columns, c.conname
FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey)
WHERE c.conrelid = $1::text::regclass AND c.contype = 'p' GROUP BY c.conname
"""
CHECKS = "SELECT conname, pg_get_constraintdef(oid) AS said FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype IN ('f', 'u')"


async def divide(database: Database, table: str, by: str, key_more: str) -> None:
    """Put a table into partitions, with its key, indexes and triggers; it is empty but for what migrations wrote."""
    indexes = [row["said"] for row in await database.fetch(INDEXES, table)]
    triggers = [row["said"] for row in await database.fetch(TRIGGERS, table)]
    (key,) = await database.fetch(KEY, table)
    assert not await database.fetch(CHECKS, table)
    await database.execute(
        f"ALTER TABLE {table} RENAME TO {table}_whole;"
        f"CREATE TABLE {table} (LIKE {table}_whole INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING IDENTITY"
        f" INCLUDING STORAGE INCLUDING CONSTRAINTS) PARTITION BY {by};"
    )
    for n in range(PARTS):
        bound = (
            f"WITH (MODULUS {PARTS}, REMAINDER {n})"
            if by.startswith("HASH")
            else f"FROM ('{2026 + n}-01-01') TO ('{2027 + n}-01-01')"
        )
        await database.execute(f"CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES {bound}")
    await database.execute(f"DROP TABLE {table}_whole CASCADE")
    await database.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({key['columns']}{key_more})")
    for said in (*indexes, *triggers):
        await database.execute(said)


@pytest.fixture
async def live(settings: Settings, database: Database) -> AsyncIterator[Running]:
    for table, (by, key_more) in TABLES.items():
        await divide(database, table, by, key_more)
    async with running(settings, timers=False, poll_seconds=0.1) as service:
        yield service


async def deliver(seller: Seller, order_id: int) -> None:
    body = order_body(order_id)
    headers = signed(body, delivery_id=f"delivery-{order_id}")
    for _again in range(2):
        answer = await seller.browser.post(EVENTS, content=body, headers=headers)
        assert answer.status_code == 200, answer.text


@pytest.mark.changes_schema
async def test_partitioned_tables_take_deliveries_once_and_answer_as_whole_ones(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    assert (await seller.connect()).status_code == 200
    for order_id in range(901, 906):
        await deliver(seller, order_id)
    await quiet(live)
    told = (await operator.get("/api/admin/webhooks", params={"storeId": seller.store_id})).json()
    assert len({one["deliveryId"] for one in told["items"]}) == 5
    kept = await database.fetch(
        "SELECT tableoid::regclass::text AS part FROM commerce_orders WHERE store_id = $1",
        seller.store_id,
    )
    assert len(kept) >= 5
    assert len({row["part"] for row in kept}) == 1
    acts = (await operator.get("/api/admin/audit", params={"subject": seller.store_id})).json()[
        "items"
    ]
    assert acts
    plan = await database.fetch(
        "EXPLAIN (FORMAT JSON) SELECT FROM commerce_orders WHERE store_id = $1", seller.store_id
    )
    assert (
        sum(f'commerce_orders_{n}"' in json.dumps(json.loads(plan[0][0])) for n in range(PARTS))
        == 1
    )
    for job in ("prune-webhook-deliveries", "prune-audit-log", "retention-sweep"):
        ran = await operator.post(
            f"/api/admin/crons/{job}/run", json={"reason": "to see it over partitions"}
        )
        assert ran.json()["status"] == "completed", ran.text
    export = await seller.browser.get(f"/api/stores/{seller.store_id}/export")
    assert export.status_code == 200
    assert "905" in export.text
