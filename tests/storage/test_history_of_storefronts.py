"""What a shop sells is told of all its products, or of a shorter time."""

from datetime import UTC, datetime

import pytest

from tolsey.actors.storefront.effects import shop_sales
from tolsey.storage.database import Database

AT = datetime(2026, 6, 30, tzinfo=UTC)
FILLED = (
    """
    INSERT INTO storefront_snapshots (domain, taken_at, scan_id, product_count, variant_count, changed)
    SELECT 'shop.example', $1::timestamptz - n * interval '1 day', 'scan_' || n, 3, 3, 3 FROM generate_series(0, 40) n
    """,
    """
    INSERT INTO storefront_products (domain, product_id, title, handle, vendor, product_type, first_seen_at, changed_at)
    SELECT 'shop.example', n, 'Product ' || n, '', '', '', $1::timestamptz - interval '50 days', $1
    FROM generate_series(1, 3) n
    """,
    """
    INSERT INTO storefront_variants (domain, variant_id, product_id, title, sku, price, available, quantity, changed_at)
    SELECT 'shop.example', n, n, '', '', 10, true, 50, $1::timestamptz FROM generate_series(1, 3) n
    """,
    """
    INSERT INTO storefront_changes (domain, at, variant_id, kind, product_id, before, after)
    SELECT 'shop.example', $1::timestamptz - d * interval '1 day', n, 'quantity', n, '50', (50 - n)::text
    FROM generate_series(1, 3) n, generate_series(0, 39) d
    """,
)
"""Three products, of which one, two and three are sold each day of forty."""


@pytest.mark.parametrize("most", [1_000, 100, 40, 10])
async def test_the_product_whose_changes_are_read_last_is_not_told_to_sell_less(
    database: Database, most: int
) -> None:
    for statement in FILLED:
        await database.execute(statement, AT)
    told = await shop_sales(database, "shop.example", AT, most=most)
    assert (told.best_seller_title, told.best_seller.value) == ("Product 3", 3.0)
    assert told.monthly_revenue.value == pytest.approx((1 + 2 + 3) * 10 * 30)
