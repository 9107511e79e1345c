"""What campaigns hold kept sums against: it finds each that is wrong, those of a lost store too."""

import pytest

from tests.campaigns.sums import wrong_sums
from tolsey.storage.database import Database

ORDER = """
INSERT INTO commerce_orders (order_id, store_id, updated_at, test, metadata, currency, total_minor,
    customer_hash, processed_at)
SELECT n, 'store_' || n % 2, now(), false, '{}', 'EUR', 100 * n, 's1:' || n % 3, now()
FROM generate_series(1, 20) n
"""
REFUND = """
INSERT INTO commerce_refunds (store_id, refund_id, order_id, currency, amount_minor, processed_at)
SELECT store_id, order_id, order_id, 'EUR', 50, now() FROM commerce_orders WHERE order_id < 5
"""
PRODUCT = """
INSERT INTO commerce_products (store_id, product_id, updated_at, status, variants, variant_count)
VALUES ('store_0', 1, now(), 'active',
    '[{"id": 1, "inventoryItemId": 1, "inventoryQuantity": 7, "tracked": true}]', 1)
"""


async def sold(database: Database) -> None:
    for statement in (ORDER, REFUND, PRODUCT):
        await database.execute(statement)


async def test_sums_that_follow_their_rows_are_right_and_so_are_none_after_a_deletion(
    database: Database,
) -> None:
    await sold(database)
    assert await wrong_sums(database) == []

    for name in ("orders", "refunds", "products"):
        await database.execute(f"DELETE FROM commerce_{name} WHERE store_id = 'store_0'")  # noqa: S608 - names of this test
    assert await wrong_sums(database) == []
    for name in ("buyers", "spending"):
        left = await database.fetch(f"SELECT DISTINCT store_id FROM commerce_{name}")  # noqa: S608 - as above
        assert [row["store_id"] for row in left] == ["store_1"]


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        ("UPDATE commerce_sales SET orders = orders + 1 WHERE minutes = 60", "orders"),
        ("UPDATE commerce_sales SET refunded_minor = 0 WHERE minutes = 15", "orders"),
        ("DELETE FROM commerce_buyers WHERE pseudonym = 's1:1'", "orders"),
        ("UPDATE commerce_buyers SET refunded_orders = 1 WHERE pseudonym = 's1:1'", "orders"),
        ("UPDATE commerce_buyers SET last_order_at = NULL WHERE pseudonym = 's1:1'", "orders"),
        ("UPDATE commerce_spending SET spent_minor = 7 WHERE pseudonym = 's1:1'", "orders"),
        ("UPDATE commerce_stock SET available = 8", "stock"),
        ("INSERT INTO commerce_buyers VALUES ('store_gone', 's1:x', 1)", "orders"),
        ("INSERT INTO commerce_spending VALUES ('store_lost', 's1:x', 'EUR', 1, 1)", "orders"),
    ],
)
async def test_a_sum_that_is_not_what_its_rows_count_to_is_found(
    database: Database, lost: str, kind: str
) -> None:
    await sold(database)
    await database.execute(lost)

    wrong = await wrong_sums(database)

    assert wrong
    assert all(f"of the {kind} of store_" in one for one in wrong)
