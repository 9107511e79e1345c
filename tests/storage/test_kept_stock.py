"""Stock that is kept with products and levels: what runs out is what reading every product says."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import orjson
import pytest

from tests.campaigns.sums import differing
from tests.seeds import seeds
from tests.storage.test_kept_sums import built, lines, opened, ordered, scanned
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import catalog, products, store, sums

SHOP = ShopKey("store_1")
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


async def made(database: Database, id: int, *variants: dict[str, Any], **said: Any) -> None:
    row = {"title": f"Product {id}", "status": "active", "deleted_at": None, **said}
    text = json.dumps([{"title": "S", "sku": f"sku-{one['id']}", **one} for one in variants])
    await database.execute(
        """
        INSERT INTO commerce_products (store_id, product_id, updated_at, deleted_at, title, status,
            variants, variant_count)
        VALUES ('store_1', $1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (store_id, product_id) DO UPDATE SET deleted_at = excluded.deleted_at,
            title = excluded.title, status = excluded.status, variants = excluded.variants
        """,
        *(id, NOW, row["deleted_at"], row["title"], row["status"], text, len(variants)),
    )


async def counted(database: Database, item: int, location: int, available: int | None) -> None:
    await database.execute(
        "INSERT INTO commerce_inventory_levels VALUES ('store_1', $1, $2, $3, $4)"
        " ON CONFLICT (store_id, inventory_item_id, location_id)"
        " DO UPDATE SET available = excluded.available",
        *(item, location, NOW, available),
    )


async def low(database: Database, threshold: int = 5, **asked: Any) -> list[tuple[Any, ...]]:
    """Read the whole report, three variants at a time."""
    found: list[tuple[Any, ...]] = []
    after = None
    while rows := await catalog.low(database, SHOP, threshold, after, 3, **asked):
        found += map(tuple, rows)
        after = rows[-1]["available"], rows[-1]["variant_id"]
    return found


def variant(id: int, quantity: int | None = None, *, tracked: bool | None = None) -> dict[str, Any]:
    said = {"id": id, "inventoryItemId": id + 1_000, "inventoryQuantity": quantity}
    return said if tracked is None else {**said, "tracked": tracked}


async def test_what_runs_out_follows_products_and_levels_in_any_order(database: Database) -> None:
    await counted(database, 1_001, 7, 2)
    await made(database, 1, variant(1, 90), variant(2, 4), variant(3, 0, tracked=False))
    await made(database, 2, variant(4, 1), status="draft")
    assert [(row[2], row[7]) for row in await low(database)] == [(1, 2), (2, 4)]
    assert [row[2] for row in await low(database, drafts=True)] == [4, 1, 2]
    await counted(database, 1_001, 8, 40)
    await counted(database, 1_002, 7, 0)
    assert await low(database) == [(1, "Product 1", 2, "S", "sku-2", 1_002, True, 0)]
    await counted(database, 1_002, 7, None)  # nobody tracks it any more
    assert await low(database) == []
    await made(database, 1, variant(5, 3), title="Renamed")
    assert [(row[1], row[2]) for row in await low(database)] == [("Renamed", 5)]
    await made(database, 1, deleted_at=NOW)
    assert await low(database) == []
    assert await differing(database, sums.VARIANTS, "store_1") == 0


async def changed(database: Database, seed: int, steps: int = 150) -> None:
    luck = random.Random(seed)  # noqa: S311 - a history of its seed
    for _ in range(steps):
        id = luck.randrange(1, 12)
        match luck.randrange(6):
            case 0:
                await database.execute(
                    "DELETE FROM commerce_inventory_levels WHERE inventory_item_id = $1", 1_000 + id
                )
            case 1:
                await database.execute("DELETE FROM commerce_products WHERE product_id = $1", id)
            case 2 | 3:
                left = luck.choice([None, 0, 3, 50])
                await counted(database, 1_000 + luck.randrange(40), luck.randrange(3), left)
            case _:
                variants = [
                    variant(
                        id * 3 + n,
                        luck.choice([None, 0, 2, 9]),
                        tracked=luck.choice([None, True, False]),
                    )
                    for n in range(luck.randrange(4))
                ]
                status = luck.choice(["active", "draft", None])
                deleted_at = luck.choice([None, None, None, NOW])
                await made(database, id, *variants, status=status, deleted_at=deleted_at)


@pytest.mark.parametrize("seed", seeds(3))
async def test_kept_stock_reports_what_reading_every_product_does(
    database: Database, seed: int
) -> None:
    await changed(database, seed)
    assert await differing(database, sums.VARIANTS, "store_1") == 0
    asked = [
        {"threshold": left, "drafts": drafts} for left in (-1, 0, 5) for drafts in (True, False)
    ]
    kept = [await low(database, **one) for one in asked]
    await sums.forget(database, sums.VARIANTS, "store_1")
    assert kept == [await low(database, **one) for one in asked]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(changed, database, seed + 50, 60)
        await built(database, sums.VARIANTS, 2)
    assert await sums.knows_stock(database, SHOP)
    assert await differing(database, sums.VARIANTS, "store_1") == 0


async def test_the_check_sees_stock_that_is_wrong(database: Database) -> None:
    await opened(database)
    await made(database, 1, variant(1, 2))
    await database.execute("UPDATE commerce_stock SET available = 3")
    assert await differing(database, sums.VARIANTS, "store_1") == 2


async def counted_products(database: Database) -> int:
    row = await store.summary(database, "store_1", SHOP, products=True, orders=False, since=NOW)
    assert row
    return int(row["products"])


@pytest.mark.parametrize("seed", seeds(2))
async def test_the_number_of_products_is_kept_with_them(database: Database, seed: int) -> None:
    await opened(database)
    assert await counted_products(database) == 0
    await changed(database, seed)
    (row,) = await database.fetch("SELECT count(*) FROM commerce_products WHERE deleted_at IS NULL")
    assert await counted_products(database) == row[0] > 0
    plan = await database.fetch(
        "EXPLAIN (ANALYZE, FORMAT JSON) " + store.SUMMARY,
        *("store_1", True, False, NOW, SHOP),
    )
    assert not scanned(orjson.loads(plan[0][0])[0]["Plan"])["commerce_products"]
    await sums.forget(database, sums.VARIANTS, "store_1")
    assert await counted_products(database) == row[0]
    await built(database, sums.VARIANTS, 2)
    assert await counted_products(database) == row[0]
    assert await differing(database, sums.VARIANTS, "store_1") == 0


async def test_the_check_sees_a_number_of_products_that_is_wrong(database: Database) -> None:
    await opened(database)
    await made(database, 1, variant(1, 2))
    await database.execute("UPDATE commerce_product_counts SET products = 3")
    assert await differing(database, sums.VARIANTS, "store_1") == 1


@pytest.mark.parametrize("whole", [True, False])
async def test_what_runs_out_first_is_what_sells_fastest_beside_what_is_left(
    database: Database, *, whole: bool
) -> None:
    await opened(database)
    await made(database, 1, variant(10, 30), variant(11, 30), title="Mug")
    await made(database, 2, variant(20, 4), status="draft")
    await made(database, 3, variant(30, 4, tracked=False), variant(31, 0), variant(32, 500))
    sold = [(1, 2, 2, "1.00"), (1, 1, 1, "1.00"), (2, 2, 2, "1.00"), (3, 2, 1, "1.00")]
    for id in range(6):
        await ordered(database, id + 1, NOW - timedelta(days=id), parts=lines(*sold))
    if not whole:
        await sums.forget(database, sums.ORDERS, "store_1")
        await sums.forget(database, sums.VARIANTS, "store_1")
    days = NOW.date() - timedelta(days=3), NOW.date()
    rows = await products.running_out(database, SHOP, *days, 9)
    # Three whole days, without today. An even number of units is of the first variant.
    assert [(row["product"], row["sku"], row["available"], row["units"]) for row in rows] == [
        ("Mug", "sku-10", 30, 6),
        ("Mug", "sku-11", 30, 3),
    ]


async def test_what_runs_out_first_is_the_same_however_few_are_wanted(database: Database) -> None:
    """What sells slowly is not held against its stock, unless so little is left that it may be first."""
    await opened(database)
    luck = random.Random(5)  # noqa: S311 - sales of their seed
    for id in range(1, 121):
        await made(database, id, variant(id, luck.choice((0, 1, 2, 30, 300))))
    await database.execute(
        "INSERT INTO commerce_product_sales SELECT 'store_1', 'day', $1::date - n % 9 - 1, n, n, 'EUR',"
        " 1 + 200 / n, 1 + 200 / n, 1 FROM generate_series(1, 120) n",
        NOW,
    )
    days = NOW.date() - timedelta(days=28), NOW.date()
    every = [tuple(row) for row in await products.running_out(database, SHOP, *days, 500)]
    assert len(every) > 80
    for limit in range(1, 30):
        rows = await products.running_out(database, SHOP, *days, limit)
        assert [tuple(row) for row in rows] == every[:limit]
