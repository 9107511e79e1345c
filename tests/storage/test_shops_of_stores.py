"""What a store already has of several shops is filed under each of them, as its audit trail tells."""

import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from tests.campaigns.sums import differing
from tolsey.storage.commerce import connections
from tolsey.storage.database import Database
from tolsey.storage.migrate import MIGRATIONS, migrate, migrations
from tolsey.storage.records.commerce.shops import ShopKey, later_key
from tolsey.storage.reports import orders, sales, sums
from tolsey.storage.reports.orders import OrderFilter

BEFORE = 46
"""The last migration before shops were told apart."""
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
HERE, EARLIER = ShopKey("moved"), later_key("moved", "old.example")
UNKNOWN = later_key("moved", "unknown")
ROWS = """
INSERT INTO organizations (id, name) VALUES ('o', 'O');
INSERT INTO stores SELECT s, 'o', s, 'salt', '2026-01-01', NULL
FROM unnest(ARRAY['moved', 'settled', 'never', 'left']) s;
INSERT INTO integration_connections (store_id, provider, shop_domain, status, connected_at)
VALUES ('moved', 'commerce', 'new.example', 'active', '2026-06-01'),
    ('settled', 'commerce', 'old.example', 'active', '2026-05-01'),
    ('left', 'commerce', 'left.example', 'disconnected', '2026-05-01');
INSERT INTO store_shops (store_id, shop_domain, facts_at) SELECT store_id, shop_domain, now()
FROM integration_connections;
INSERT INTO audit_log (event, subject, actor, metadata, created_at) VALUES
    ('commerce.connected', 'moved', 'u', '{"shopDomain": "old.example"}', '2026-02-01'),
    ('commerce.connected', 'moved', 'u', '{"shopDomain": "new.example"}', '2026-06-01'),
    ('commerce.connected', 'left', 'u', '{"shopDomain": "left.example"}', '2026-05-01'),
    ('commerce.disconnected', 'left', 'u', '{"shopDomain": "left.example"}', '2026-06-01');
INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, currency, total_minor,
    processed_at, source_name, customer_hash)
SELECT s, n, '2026-06-20', false, '{}', 'EUR', 100, '2026-06-20', 'web', 's1:' || n
FROM unnest(ARRAY['moved', 'settled']) s, generate_series(5820982911946154001, 5820982911946154006) n;
INSERT INTO commerce_refunds SELECT store_id, order_id, order_id, 'EUR', 10, '2026-06-21', '2026-06-21'
FROM commerce_orders;
INSERT INTO commerce_fulfillments (store_id, fulfillment_id, order_id, updated_at)
SELECT store_id, order_id, order_id, now() FROM commerce_orders;
INSERT INTO commerce_products (store_id, product_id, updated_at, status, variants, variant_count)
SELECT 'moved', n, now(), 'active',
    jsonb_build_array(jsonb_build_object('id', n, 'inventoryItemId', n)), 1
FROM generate_series(1, 3) n;
INSERT INTO commerce_inventory_levels SELECT 'moved', n, 1, now(), n FROM generate_series(1, 3) n;
INSERT INTO commerce_customers (store_id, customer_id, updated_at)
SELECT 'moved', n, now() FROM generate_series(1, 3) n;
INSERT INTO audit_log (event, subject, actor, metadata)
SELECT 'commerce.webhook.' || thing, 'moved', 'platform', jsonb_build_object('shopDomain',
    CASE n WHEN 1 THEN 'new' ELSE 'old' END || '.example', 'payload', jsonb_build_object(id,
    CASE thing WHEN 'orders.create' THEN 5820982911946154000 ELSE 0 END + n))
FROM generate_series(1, 2) n, (VALUES ('orders.create', 'id'), ('products.update', 'id'),
    ('customers.create', 'id'), ('inventory_levels.update', 'inventoryItemId')) AS t(thing, id);
INSERT INTO audit_log (event, subject, actor, metadata) VALUES
    ('commerce.webhook.orders.updated', 'moved', 'platform',
        '{"shopDomain": "new.example", "payload": {"id": 5820982911946154003}}'),
    ('commerce.webhook.orders.edited', 'moved', 'platform',
        '{"shopDomain": "old.example", "payload": {"orderId": 5820982911946154004, "id": 3}}'),
    ('commerce.webhook.bulk_operations.finish', 'moved', 'platform',
        '{"shopDomain": "old.example", "payload": {"id": "gid://shopify/BulkOperation/1"}}'),
    ('commerce.webhook.orders.create', 'moved', 'platform',
        '{"shopDomain": "old.example", "payload": "gone"}');
"""


@pytest.fixture
async def filed(empty_database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    """A database with stores of the release before, brought up to date."""
    for step in migrations():
        if step.number <= BEFORE:
            shutil.copy(MIGRATIONS / f"{step.name}.sql", tmp_path)
    await migrate(empty_database_url, tmp_path)
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(ROWS)
    await connection.close()
    await migrate(empty_database_url)
    database = Database(empty_database_url)
    await database.open()
    yield database
    await database.close()


async def kept(database: Database, table: str, column: str) -> dict[str, list[int]]:
    rows = await database.fetch(
        f"SELECT store_id, array_agg({column} % 10 ORDER BY 1) AS ids FROM {table}"  # noqa: S608 - names of this test
        " WHERE store_id LIKE 'moved%' GROUP BY 1"
    )
    return {row["store_id"]: sorted(row["ids"]) for row in rows}


async def test_each_row_goes_to_the_shop_that_told_of_it_last(filed: Database) -> None:
    answered = {HERE: [1, 3], EARLIER: [2, 4], UNKNOWN: [5, 6]}
    assert await kept(filed, "commerce_orders", "order_id") == answered
    assert await kept(filed, "commerce_refunds", "order_id") == answered
    assert await kept(filed, "commerce_fulfillments", "order_id") == answered
    things = {HERE: [1], EARLIER: [2], UNKNOWN: [3]}
    assert await kept(filed, "commerce_products", "product_id") == things
    assert await kept(filed, "commerce_inventory_levels", "inventory_item_id") == things
    assert await kept(filed, "commerce_customers", "customer_id") == things
    rows = await filed.fetch(
        "SELECT store_id, count(*) AS n FROM commerce_orders GROUP BY 1 ORDER BY 1"
    )
    assert (rows[-1]["store_id"], rows[-1]["n"]) == ("settled", 6)  # it only ever had one shop


async def test_reads_show_the_connected_shops_rows_and_sums_equal_a_recount(
    filed: Database,
) -> None:
    assert await connections.shop_key_of(filed, "moved") == HERE
    page = await orders.page(filed, HERE, OrderFilter(), None, 10)
    assert [row["order_id"] % 10 for row in page] == [3, 1]
    wanted = (NOW - timedelta(days=30), NOW)
    for key in (HERE, EARLIER, UNKNOWN, ShopKey("settled")):
        for kind in sums.KINDS:
            while await sums.build(filed, kind, key, 100):
                pass
            assert await differing(filed, kind, key) == 0
    (row,) = await sales.report(filed, HERE, *wanted, group_by="none")
    assert (row["orders"], row["refunded_minor"]) == (2, 20)
    (row,) = await sales.report(filed, ShopKey("settled"), *wanted, group_by="none")
    assert (row["orders"], row["refunded_minor"]) == (6, 60)


async def test_the_present_shop_keeps_the_stores_salt_and_the_history_is_that_of_the_audit_trail(
    filed: Database,
) -> None:
    rows = await filed.fetch("SELECT * FROM shops_of_stores ORDER BY store_id, shop_domain")
    assert [(row["store_id"], row["shop_domain"], row["shop_key"]) for row in rows] == [
        ("left", "left.example", "left"),
        ("moved", "new.example", "moved"),
        ("moved", "old.example", "moved@old.example"),
        ("moved", "unknown", "moved@unknown"),
        ("settled", "old.example", "settled"),
    ]
    assert [row["sealed_salt"] for row in rows] == [
        None
    ] * 5  # that of `stores` is the first shop's
    answered = [
        (one.shop_domain, one.connected_at.month, one.ended_at and one.ended_at.month, one.ending)
        for store_id in ("moved", "left", "never")
        for one in await connections.history(filed, store_id)
    ]
    assert answered == [
        ("old.example", 2, 6, "replaced"),
        ("new.example", 6, None, None),
        ("left.example", 5, 6, "disconnected"),
    ]
