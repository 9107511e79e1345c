"""Every kept sum equals a recount: what campaigns, erasures and deletions must leave true."""

from itertools import product
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.reports import sums

AT_ONCE: Final = 1_000
STORES: Final = """
SELECT store_id FROM commerce_orders UNION SELECT store_id FROM commerce_sales
UNION SELECT store_id FROM commerce_product_sales
UNION SELECT store_id FROM commerce_cohorts
UNION SELECT store_id FROM commerce_attribution UNION SELECT store_id FROM commerce_counted_touches
UNION SELECT store_id FROM commerce_buyers UNION SELECT store_id FROM commerce_spending
UNION SELECT store_id FROM commerce_counted_refunds UNION SELECT store_id FROM commerce_refund_reasons
UNION SELECT store_id FROM commerce_products UNION SELECT store_id FROM commerce_stock
UNION SELECT store_id FROM commerce_product_counts
ORDER BY store_id
"""
"""Also stores that are gone: a sum that outlives its rows is wrong."""


async def differing(database: Database, kept: sums.Kept, store_id: str) -> int:
    """Count what is kept of a store and is not as its rows count to."""
    return sum([wrong async for wrong in sums.differences(database, kept, store_id)])


async def wrong_sums(database: Database) -> list[str]:
    """Finish the sums that are being built, and name those that are not what their rows count to."""
    for kept in sums.KINDS:
        for store_id in await sums.unbuilt(database, kept):
            while await sums.build(database, kept, store_id, AT_ONCE) == AT_ONCE:
                pass
    stores = [row["store_id"] for row in await database.fetch(STORES)]
    return [
        f"{count} sums of the {kept.name} of {store_id}"
        for kept, store_id in product(sums.KINDS, stores)
        if (count := await differing(database, kept, store_id))
    ]
