"""Sums that are kept with their rows: they equal a recount after whatever came, in whatever order."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import anyio
import asyncpg
import orjson
import pytest

from tests.campaigns.sums import differing
from tests.seeds import seeds
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports import customers, products, sales, store, sums

SHOP = ShopKey("store_1")
NOW = datetime(2026, 7, 1, 12, 34, 56, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


async def opened(database: Database) -> None:
    await database.execute(
        "INSERT INTO organizations (id, name, created_at) VALUES ('org_1', 'A', $1)", NOW
    )
    await database.execute(
        "INSERT INTO stores VALUES ('store_1', 'org_1', 'A', 'salt', $1, NULL)", NOW
    )


async def built(database: Database, kind: sums.Kept, most: int) -> None:
    while await sums.build(database, kind, "store_1", most) == most:
        pass


async def ordered(database: Database, id: int, at: datetime | None = NOW, **said: Any) -> None:
    """Write an order as a delivery does: whole, over what there was of it."""
    row = {
        "store_id": "store_1",
        "currency": "EUR",
        "total_minor": 1_000,
        "current_total_minor": None,
        "test": False,
        "source_name": "web",
        "customer_hash": "s1:a",
        "financial_status": "paid",
        "cancelled_at": None,
        "deleted_at": None,
        "parts": None,
        "cancel_reason": None,
        **said,
    }
    names = ", ".join(row)
    values = ", ".join(f"${n}" for n in range(4, len(row) + 4))
    changed = ", ".join(f"{name} = excluded.{name}" for name in (*row, "processed_at"))
    await database.execute(
        f"INSERT INTO commerce_orders (order_id, processed_at, updated_at, metadata, {names})"  # noqa: S608 - names of this test
        f" VALUES ($1, $2, $3, '{{}}', {values}) ON CONFLICT (store_id, order_id)"
        f" DO UPDATE SET {changed}",
        *(id, at, NOW, *row.values()),
    )


async def refunded(
    database: Database,
    id: int,
    order: int,
    minor: int | None,
    at: datetime = NOW,
    *,
    reason: str | None = None,
) -> None:
    await database.execute(
        "INSERT INTO commerce_refunds VALUES ('store_1', $1, $2, 'EUR', $3, $4, $4, $5)"
        " ON CONFLICT (store_id, refund_id) DO UPDATE SET amount_minor = excluded.amount_minor,"
        " reason = excluded.reason",
        *(id, order, minor, at, reason),
    )


async def given_back(database: Database, days: int = 30) -> list[tuple[Any, ...]]:
    """Tell what was given back: if the order was cancelled, why, in what, how often and how much."""
    rows = await sales.refunds(database, SHOP, NOW - timedelta(days=days), NOW + MINUTE)
    return [tuple(row) for row in rows]


def lines(*sold: tuple[int, int, int, str]) -> str:
    """Write what an order is made of: of each line the product, the units, those kept, and the price."""
    return json.dumps(
        {
            "lines": [
                {
                    "productId": product or None,
                    "variantId": product * 10 + units % 2,
                    "quantity": units,
                    "currentQuantity": kept,
                    "price": price,
                    "discount": "0.05",
                }
                for product, units, kept, price in sold
            ]
        }
    )


async def best(database: Database, days: int = 40, **asked: Any) -> list[tuple[Any, ...]]:
    """Rank what was sold: product, currency, units, those kept, and for how much."""
    today = NOW.date()
    wanted: dict[str, Any] = {"by": "revenue", "limit": 5, **asked}
    start, end = today - timedelta(days=days), today + timedelta(days=1)
    rows = await products.best_sellers(database, SHOP, start, end, **wanted)
    return [tuple(row)[:5] for row in rows]


async def told(database: Database, **asked: Any) -> list[tuple[Any, ...]]:
    start, end = NOW - timedelta(days=30), NOW + MINUTE
    wanted = {"group_by": "none", **asked}
    rows = await sales.report(database, SHOP, start, end, **wanted)
    return [tuple(row) for row in rows]


async def busiest(database: Database, after: tuple[int, str] | None, most: int) -> list[str]:
    rows = await customers.busiest(database, SHOP, after, most)
    return [row["pseudonym"] for row in rows]


async def bought(database: Database, *whose: str) -> list[tuple[Any, ...]]:
    """Tell of each buyer: orders, the first and last, how many were refunded, and what was spent."""
    rows = await customers.counts(database, SHOP, list(whose))
    return [tuple(row)[1:] for row in rows]


async def cohorts(database: Database) -> list[tuple[Any, ...]]:
    """Tell of each month: buyers, those who came back, orders and what was spent."""
    return [(f"{row[0]:%Y-%m}", *row[1:]) for row in await customers.cohorts(database, SHOP, 9)]


async def touched(
    database: Database, order: int, source: str | None, campaign: str | None = None
) -> None:
    """Write down where the buyer of an order came from, as a delivery does."""
    await database.execute(
        "INSERT INTO attribution_touches (store_id, order_id, updated_at, source, campaign)"
        " VALUES ('store_1', $1, $2, $3, $4) ON CONFLICT (store_id, order_id)"
        " DO UPDATE SET source = excluded.source, campaign = excluded.campaign",
        *(order, NOW, source, campaign),
    )


async def attributed(
    database: Database, days: int = 30, *, campaigns: bool = True
) -> list[tuple[Any, ...]]:
    """Tell of each source, medium and campaign: the currency, orders, gross, and what is left of it."""
    today = NOW.date()
    rows = await sales.attributed(
        database,
        SHOP,
        today - timedelta(days=days),
        today + timedelta(days=1),
        campaigns=campaigns,
        limit=50,
    )
    return [tuple(row) for row in rows]


async def kept(database: Database, name: str = "commerce_sales") -> int:
    rows = await database.fetch(f"SELECT count(*) FROM {name}")  # noqa: S608 - names of this test
    return cast("int", rows[0][0])


async def test_a_sale_is_in_the_sums_with_its_row_and_leaves_them_with_it(
    database: Database,
) -> None:
    await ordered(database, 1)
    await ordered(database, 2, source_name=None, customer_hash="s1:b")
    await ordered(database, 3, customer_hash="s1:b", at=NOW - timedelta(days=3))
    assert await told(database) == [("all", "EUR", 3, 3_000, 3_000, 0)]
    assert await busiest(database, None, 9) == ["s1:b", "s1:a"]
    assert await busiest(database, (2, "s1:b"), 9) == ["s1:a"]
    await ordered(database, 2, source_name=None, current_total_minor=400, customer_hash=None)
    await ordered(database, 3, cancelled_at=NOW)
    assert await told(database, group_by="source") == [
        ("unknown", "EUR", 1, 1_000, 400, 0),
        ("web", "EUR", 1, 1_000, 1_000, 0),
    ]
    assert await busiest(database, None, 9) == ["s1:a"]
    # No pseudonym stays of who is erased.
    assert await kept(database, "commerce_buyers") == await kept(database, "commerce_spending") == 1
    assert await differing(database, sums.ORDERS, "store_1") == 0
    await database.execute("DELETE FROM commerce_orders")
    assert await told(database) == []
    assert await differing(database, sums.ORDERS, "store_1") == 0


async def test_what_a_buyer_spent_is_kept_with_each_order_by_currency(database: Database) -> None:
    days = [NOW - timedelta(days=n) for n in range(4)]
    await ordered(database, 1, days[3])
    await ordered(database, 2, days[2], currency="USD", current_total_minor=40)
    await ordered(database, 3, days[1], currency=None)
    await ordered(database, 4, days[0], total_minor=None, financial_status="refunded")
    spent = '[["EUR", 1000], ["USD", 40]]'
    nothing = (0, None, None, 0, "[]")
    assert await bought(database, "s1:a", "s1:nobody") == [(4, days[3], days[0], 1, spent), nothing]
    await ordered(database, 1, days[3], cancelled_at=NOW)
    await ordered(database, 4, days[0], customer_hash="s1:b", financial_status="partially_refunded")
    assert await bought(database, "s1:a", "s1:b") == [
        (2, days[2], days[1], 0, '[["USD", 40]]'),
        (1, days[0], days[0], 1, '[["EUR", 1000]]'),
    ]
    # It was made earlier after all.
    await ordered(database, 3, days[3], currency="USD", total_minor=2)
    assert await bought(database, "s1:a") == [(2, days[3], days[2], 0, '[["USD", 42]]')]
    await database.execute("UPDATE commerce_orders SET customer_hash = NULL")
    assert await bought(database, "s1:a", "s1:b") == [nothing, nothing]
    assert await kept(database, "commerce_spending") == 0


async def test_what_was_sold_of_a_product_is_kept_with_each_order(database: Database) -> None:
    await ordered(database, 1, parts=lines((7, 2, 2, "10.00"), (8, 1, 1, "99.95")))
    await ordered(database, 2, NOW - timedelta(days=39), parts=lines((7, 3, 3, "10.00")))
    await ordered(database, 3, currency="JPY", parts=lines((7, 1, 1, "900"), (0, 5, 5, "1")))
    sevens, eights = (7, "EUR", 5, 5, Decimal("49.90")), (8, "EUR", 1, 1, Decimal("99.90"))
    yen = (7, "JPY", 1, 1, Decimal("899.95"))
    assert await best(database) == [eights, sevens, yen]
    assert await best(database, by="units") == [sevens, eights, yen]
    assert await best(database, by="units", limit=1) == [sevens, yen]
    assert await best(database, days=38) == [eights, (7, "EUR", 2, 2, Decimal("19.95")), yen]
    # A parcel changes nothing, a return what is kept, a cancellation all.
    await ordered(
        database, 1, parts=lines((7, 2, 1, "10.00"), (8, 1, 1, "99.95")), financial_status="x"
    )
    assert (await best(database, by="units"))[0] == (7, "EUR", 5, 4, Decimal("49.90"))
    await ordered(database, 2, cancelled_at=NOW, parts=lines((7, 3, 3, "10.00")))
    await ordered(database, 3, deleted_at=NOW)
    assert await best(database) == [eights, (7, "EUR", 2, 1, Decimal("19.95"))]
    assert await differing(database, sums.ORDERS, "store_1") == 0
    await database.execute("DELETE FROM commerce_orders")
    assert await best(database) == []
    assert await differing(database, sums.ORDERS, "store_1") == 0


@pytest.mark.changes_schema
async def test_the_best_sellers_of_a_year_are_read_from_months(database: Database) -> None:
    """Days only where the period begins within a month."""
    for id in range(300):
        await ordered(database, id, NOW - timedelta(days=id), parts=lines((7, 1, 1, "1.05")))
    await database.execute("ANALYZE commerce_orders, commerce_product_sales")
    first, following = NOW.date().replace(month=1, day=1), NOW.date().replace(month=8, day=1)
    asked = (SHOP, first - timedelta(days=9), NOW.date() + timedelta(days=1), "units", 10)
    plan = await database.fetch(
        "EXPLAIN (ANALYZE, FORMAT JSON) " + products.BEST_OF_SUMS, *asked, first, following
    )
    read = scanned(orjson.loads(plan[0][0])[0]["Plan"])
    assert (read["commerce_orders"], read["commerce_product_sales"]) == (0, 9 + 7)


async def test_the_best_sellers_of_any_days_are_those_of_their_orders(database: Database) -> None:
    """Whole months more or less some days are the days that were asked for; some orders are yet to come."""
    luck = random.Random(7)  # noqa: S311 - sales of their seed
    for id in range(150):
        at = NOW + timedelta(days=luck.randrange(-120, 30))
        await ordered(
            database, id, at, parts=lines((luck.randrange(4), 1 + id % 3, id % 2, "1.05"))
        )
    found = set[int]()
    for _ in range(60):
        start = NOW.date() + timedelta(days=luck.randrange(-125, 5))
        end = start + timedelta(days=luck.randrange(1, 100))
        asked = (database, SHOP, start, end)
        kept = await products.best_sellers(*asked, by="revenue", limit=9)
        rows = await database.fetch(products.BEST_OF_ROWS, SHOP, start, end, "revenue", 9)
        assert [tuple(row)[:7] for row in kept] == [tuple(row) for row in rows], (start, end)
        found.add(len(rows))
    assert found >= {1, 3}


@pytest.mark.parametrize("by", ["revenue", "units"])
async def test_the_best_of_those_that_lead_in_some_month_are_the_best_of_all_wherever_that_is_said(
    database: Database, by: products.Ranking
) -> None:
    """However few leaders are looked at; an order of less than nothing may be among them."""
    luck = random.Random(11)  # noqa: S311 - sales of their seed
    for id in range(400):
        at = NOW - timedelta(days=luck.randrange(120))
        product = int(12 * luck.random() ** 3)
        sold = lines((product, 1 + id % 3, 1, luck.choice(("1.05", "9.90"))))
        await ordered(database, id, at, currency="EUR" if product % 3 else "USD", parts=sold)
    said = Counter[bool]()
    for number in range(80):
        if number == 60:
            await ordered(database, 500, parts=lines((1, 1, 1, "0.01")))
        start = NOW.date() - timedelta(days=luck.randrange(125))
        end = start + timedelta(days=luck.randrange(1, 120))
        first, last = start.replace(day=1), products.next_month(end)
        limit, leaders = luck.randrange(1, 4), luck.randrange(1, 12)
        found = await database.fetch(
            products.BEST_OF_LEADERS[by], SHOP, start, end, limit, first, last, leaders
        )
        rows = await database.fetch(products.BEST_OF_ROWS, SHOP, start, end, by, limit)
        is_certain = found[0]["is_certain"]
        if is_certain:
            assert [tuple(row)[:7] for row in found if row["place"]] == [tuple(row) for row in rows]
        assert not (is_certain and number >= 60)
        said[is_certain] += 1
    assert min(said[False] - 20, said[True]) > 10


@pytest.mark.changes_schema
async def test_the_best_sellers_of_many_products_are_found_without_adding_up_the_others(
    database: Database,
) -> None:
    await database.execute(
        "INSERT INTO commerce_product_sales SELECT 'store_1', span, day::date, n,"
        " CASE span WHEN 'day' THEN 1 ELSE 0 END, 'EUR', 1 + 90000 / n, 1, 10 + 900000 / n"
        " FROM (VALUES ('month', 13, interval '1 month'), ('day', 31, '1 day')) AS w(span, times, step),"
        " generate_series($1::timestamp - (times - 1) * step, $1, step) AS day, generate_series(1, 3000) n",
        datetime(2026, 7, 1),  # noqa: DTZ001 - a day
    )
    await database.execute("ANALYZE commerce_product_sales")
    days = NOW.date() - timedelta(days=364), NOW.date() + timedelta(days=1)
    by: products.Ranking
    for by in ("revenue", "units"):
        rows = await products.best_sellers(database, SHOP, *days, by=by, limit=10)
        assert [row["product_id"] for row in rows] == list(range(1, 11))
    asked = (SHOP, *days, 10, NOW.date().replace(year=2025), date(2026, 8, 1), 100)
    plan = await database.fetch(
        "EXPLAIN (ANALYZE, FORMAT JSON) " + products.BEST_OF_LEADERS["revenue"], *asked
    )
    # Of 39,000 sums of months.
    assert scanned(orjson.loads(plan[0][0])[0]["Plan"])["commerce_product_sales"] < 5_000


@pytest.mark.parametrize("whole", [True, False])
async def test_buyers_are_of_the_month_of_their_first_order_wherever_that_moves(
    database: Database, *, whole: bool
) -> None:
    may, june = (NOW.replace(month=month) for month in (5, 6))
    await ordered(database, 1, NOW, customer_hash="s1:a")
    await ordered(database, 2, june, customer_hash="s1:b", current_total_minor=40)
    await ordered(database, 3, june, customer_hash="s1:c", currency="USD")
    await ordered(database, 4, june, customer_hash=None)
    if not whole:
        await sums.forget(database, sums.ORDERS, "store_1")
    july = ("2026-07", 1, 0, 1, '[["EUR", 1000]]')
    assert await cohorts(database) == [july, ("2026-06", 2, 0, 2, '[["EUR", 40], ["USD", 1000]]')]
    # An order that is told late was the first of its buyer, and takes all others along.
    await ordered(database, 5, may, customer_hash="s1:b")
    of_june = ("2026-06", 1, 0, 1, '[["USD", 1000]]')
    assert await cohorts(database) == [july, of_june, ("2026-05", 1, 1, 2, '[["EUR", 1040]]')]
    await ordered(database, 5, may, customer_hash="s1:b", cancelled_at=NOW)
    await ordered(database, 1, NOW, customer_hash=None)
    assert await cohorts(database) == [("2026-06", 2, 0, 2, '[["EUR", 40], ["USD", 1000]]')]
    await database.execute("UPDATE commerce_orders SET customer_hash = NULL")
    assert await cohorts(database) == []
    await built(database, sums.ORDERS, 2)
    assert await differing(database, sums.ORDERS, "store_1") == 0


@pytest.mark.parametrize("whole", [True, False])
async def test_sales_are_told_by_where_buyers_came_from_and_the_rest_without_a_source(
    database: Database, *, whole: bool
) -> None:
    await touched(database, 1, "news", "spring")  # before its order
    for id in range(1, 5):
        await ordered(database, id, total_minor=10**id)
    await touched(database, 2, "news")
    await touched(database, 3, "google")
    if not whole:
        await sums.forget(database, sums.ORDERS, "store_1")
    unknown, google = (
        ("", "", "", "EUR", 1, 10_000, 10_000),
        ("google", "", "", "EUR", 1, 1_000, 1_000),
    )
    spring, news = ("news", "", "spring", "EUR", 1, 10, 10), ("news", "", "", "EUR", 1, 100, 100)
    assert await attributed(database) == [unknown, google, news, spring]
    both = ("news", "", "", "EUR", 2, 110, 110)
    assert await attributed(database, campaigns=False) == [unknown, google, both]
    await touched(database, 1, None)  # the buyer was erased
    await ordered(database, 2, total_minor=100, current_total_minor=7)
    await ordered(database, 3, total_minor=10**3, cancelled_at=NOW)
    more = ("", "", "", "EUR", 2, 10_010, 10_010)
    assert await attributed(database) == [more, (*news[:-1], 7)]
    await database.execute("DELETE FROM attribution_touches")
    assert await attributed(database) == [("", "", "", "EUR", 3, 10_110, 10_017)]
    await built(database, sums.ORDERS, 2)
    assert await differing(database, sums.ORDERS, "store_1") == 0


async def test_what_the_busiest_bought_is_read_without_their_orders(database: Database) -> None:
    """A buyer of twenty thousand orders costs a list of buyers no more than one of a single one."""
    await database.execute(
        "INSERT INTO commerce_orders (store_id, order_id, updated_at, currency, total_minor, test,"
        " customer_hash, metadata, processed_at) SELECT 'store_1', n, $1, 'EUR', 1, false,"
        " 's1:' || least(n, 50), '{}', $1 FROM generate_series(1, 20000) n",
        NOW,
    )
    whose = await busiest(database, None, 50)
    plan = await database.fetch("EXPLAIN " + customers.COUNTS, SHOP, whose)
    assert not any("commerce_orders" in line[0] for line in plan), plan
    assert (await bought(database, "s1:50"))[0] == (19_951, NOW, NOW, 0, '[["EUR", 19951]]')


async def unblocked(database: Database, sql: str) -> None:
    """Run a statement that waits for nobody."""
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL lock_timeout = '1ms'")
        await tx.execute(sql)


async def test_what_changes_no_sum_does_not_wait_for_who_builds_them(
    database: Database, database_url: str
) -> None:
    await ordered(database, 1)
    builder = await asyncpg.connect(database_url)
    try:
        await builder.execute("SELECT pg_advisory_lock(commerce_sums_lock('store_1'))")
        await unblocked(database, "UPDATE commerce_orders SET name = '#1', updated_at = now()")
        with pytest.raises(StorageError, match="LockNotAvailable"):
            await unblocked(database, "UPDATE commerce_orders SET total_minor = 7")
    finally:
        await builder.close()
    await database.execute("UPDATE commerce_orders SET total_minor = 7")
    assert await told(database) == [("all", "EUR", 1, 7, 7, 0)]
    assert await differing(database, sums.ORDERS, "store_1") == 0


@pytest.mark.parametrize("refund_first", [False, True])
async def test_a_refund_counts_while_its_order_does_whichever_comes_first(
    database: Database, *, refund_first: bool
) -> None:
    if refund_first:
        await refunded(database, 7, 1, None)
        await ordered(database, 1)
    else:
        await ordered(database, 1)
        await refunded(database, 7, 1, None)
    await refunded(database, 7, 1, 250)
    await refunded(database, 7, 1, 250)
    assert await told(database) == [("all", "EUR", 1, 1_000, 1_000, 250)]
    await ordered(database, 1, source_name="pos")
    assert await told(database, group_by="source") == [("pos", "EUR", 1, 1_000, 1_000, 250)]
    await ordered(database, 1, deleted_at=NOW)
    assert await told(database) == []
    assert await kept(database, "commerce_counted_refunds") == 0
    assert await differing(database, sums.ORDERS, "store_1") == 0


@pytest.mark.parametrize("whole", [True, False])
async def test_refunds_are_told_by_their_reasons_and_those_of_cancelled_orders_apart(
    database: Database, *, whole: bool
) -> None:
    for id in (1, 2, 3):
        await ordered(database, id)
        await refunded(database, id, id, 100 * id, reason=("returned", "returned", None)[id - 1])
    if not whole:
        await sums.forget(database, sums.ORDERS, "store_1")
    returned, unknown = (False, "returned", "EUR", 2, 300), (False, "unknown", "EUR", 1, 300)
    assert await given_back(database) == [returned, unknown]
    await ordered(database, 2, cancelled_at=NOW, cancel_reason="fraud")
    fraud, left = (True, "fraud", "EUR", 1, 200), (False, "returned", "EUR", 1, 100)
    assert await given_back(database) == [unknown, fraud, left]
    assert await told(database) == [("all", "EUR", 2, 2_000, 2_000, 400)]
    await ordered(database, 2, cancelled_at=NOW, cancel_reason="customer")
    await ordered(database, 3, test=True)
    assert await given_back(database) == [(True, "customer", *fraud[2:]), left]
    await ordered(database, 2, cancelled_at=NOW, deleted_at=NOW)
    assert await given_back(database) == [left]
    await database.execute("DELETE FROM commerce_orders")
    assert await given_back(database) == []
    await built(database, sums.ORDERS, 500)
    assert await differing(database, sums.ORDERS, "store_1") == 0


async def test_the_whole_days_of_a_report_of_refunds_and_the_parts_of_days_around_them_are_told_once(
    database: Database,
) -> None:
    hours = range(-60, 61)
    for hour in hours:
        await ordered(database, hour + 100)
        await refunded(database, hour + 100, hour + 100, 1, NOW + timedelta(hours=hour))
    luck = random.Random(14)  # noqa: S311 - the same each time
    for _ in range(60):
        start, end = sorted(NOW + timedelta(minutes=luck.randrange(-4000, 4000)) for _ in range(2))
        there = sum(start <= NOW + timedelta(hours=hour) < end for hour in hours)
        rows = await sales.refunds(database, SHOP, start, end)
        assert [row["refunds"] for row in rows] == [there] * bool(there)


async def test_an_order_and_its_refund_of_one_statement_are_counted_once(
    database: Database,
) -> None:
    await database.execute(
        """
        WITH o AS (
            INSERT INTO commerce_orders (store_id, order_id, updated_at, currency, total_minor,
                test, metadata, processed_at)
            VALUES ('store_1', 1, $1, 'EUR', 900, false, '{}', $1)
        )
        INSERT INTO commerce_refunds VALUES ('store_1', 7, 1, 'EUR', 100, $1, $1)
        """,
        NOW,
    )
    assert await told(database) == [("all", "EUR", 1, 900, 900, 100)]


async def filled(database: Database, seed: int, steps: int = 250) -> None:
    """Let orders and refunds come, change, come again and go, in one order of many."""
    luck = random.Random(seed)  # noqa: S311 - a history of its seed
    for _ in range(steps):
        at = NOW - timedelta(minutes=luck.randrange(60 * 24 * 40))
        id = luck.randrange(1, 40)
        match luck.randrange(9):
            case 8:
                await touched(
                    database, id, luck.choice([None, "news", "google"]), luck.choice([None, "c"])
                )
            case 0:
                await refunded(
                    database,
                    luck.randrange(1, 40),
                    id,
                    luck.choice([None, 5, 70]),
                    at,
                    reason=luck.choice([None, "returned"]),
                )
            case 1:
                await database.execute("DELETE FROM commerce_refunds WHERE refund_id = $1", id)
            case 2:
                await database.execute("DELETE FROM commerce_orders WHERE order_id = $1", id)
            case _:
                await ordered(
                    database,
                    id,
                    luck.choice([None, at, at, at]),
                    currency=luck.choice([None, "EUR", "USD", "EUR"]),
                    total_minor=luck.choice([None, 100, 2_000]),
                    current_total_minor=luck.choice([None, 90]),
                    source_name=luck.choice([None, "web", "pos"]),
                    financial_status=luck.choice([None, "paid", "refunded"]),
                    customer_hash=luck.choice([None, "s1:a", "s1:b", "s1:c", "old digest"]),
                    test=luck.random() < 0.1,
                    parts=luck.choice(
                        [
                            None,
                            lines((1, 2, luck.randrange(3), "7.10"), (2, 1, 1, "3")),
                            lines((2, luck.randrange(1, 4), 1, "3.50")),
                        ]
                    ),
                    cancelled_at=luck.choice([None, None, None, at]),
                    cancel_reason=luck.choice([None, "fraud"]),
                    deleted_at=luck.choice([None, None, None, None, at]),
                )


async def recounted(
    database: Database, asked: Sequence[dict[str, Any]], since: Sequence[datetime]
) -> list[Any]:
    """Ask for sales, for buyers page by page and what they bought, and for the summary's orders."""
    found: list[Any] = [
        [tuple(row) for row in await sales.report(database, SHOP, **one)] for one in asked
    ]
    found += [
        await best(database, days=days, by=by) for days in (2, 9, 40) for by in ("units", "revenue")
    ]
    found += [await given_back(database, days) for days in (1, 30)]
    found.append(await cohorts(database))
    found += [await attributed(database, days) for days in (1, 30)]
    whole = await busiest(database, None, 10)
    found.append(whole)
    found.append(await bought(database, *whole))
    for row in await customers.counts(database, SHOP, whole):
        after = (row["orders"], row["pseudonym"])
        found.append(await busiest(database, after, 2))
    for at in since:
        one = await store.summary(database, "store_1", SHOP, products=True, orders=True, since=at)
        found.append(one and one["orders"])
    return found


@pytest.mark.parametrize("seed", seeds(4))
async def test_kept_sums_answer_what_counting_the_rows_does(database: Database, seed: int) -> None:
    """In every zone, also those that are half an hour or three quarters off, and at ragged ends."""
    await opened(database)
    await filled(database, seed)
    assert await differing(database, sums.ORDERS, "store_1") == 0
    periods = [
        (NOW - timedelta(days=30), NOW),
        (NOW - timedelta(days=9), NOW - timedelta(days=2, minutes=11)),
        (NOW - 20 * MINUTE, NOW - 3 * MINUTE),
        (NOW.replace(minute=0, second=0) - timedelta(days=8), NOW.replace(minute=0, second=0)),
    ]
    asked = [
        {"start": start, "end": end, "group_by": group, "zone": zone}
        for start, end in periods
        for group in ("none", "source", "day", "week", "month")
        for zone in ("UTC", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu")
    ]
    since = [NOW - timedelta(days=days, minutes=days) for days in range(0, 40, 7)]
    from_sums = await recounted(database, asked, since)
    await sums.forget(database, sums.ORDERS, "store_1")
    from_rows = await recounted(database, asked, since)
    assert from_sums == from_rows
    assert any(from_rows)


@pytest.mark.parametrize("seed", seeds(2))
async def test_sums_are_held_against_their_rows_slice_by_slice(
    database: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """No statement reads a whole store, and none of its sums lies between two slices."""
    monkeypatch.setattr(sums, "ROWS_AT_ONCE", 7)
    await opened(database)
    await filled(database, seed)
    assert await differing(database, sums.ORDERS, "store_1") == 0
    everything = (
        ("commerce_sales", "orders", ""),
        ("commerce_product_sales", "sold", "AND span = 'day'"),
        ("commerce_product_sales", "units", "AND span = 'month'"),
        ("commerce_cohorts", "orders", ""),
        ("commerce_attribution", "orders", ""),
        ("commerce_counted_touches", "gross_minor", ""),
        ("commerce_buyers", "orders", ""),
        ("commerce_spending", "spent_minor", ""),
        ("commerce_counted_refunds", "amount_minor", ""),
        ("commerce_refund_reasons", "refunds", ""),
    )
    for table, column, some in everything:
        double = f"UPDATE {table} SET {column} = {column} * 2 WHERE {column} <> 0 {some}"  # noqa: S608 - names of this test
        changed = await database.execute(double)
        assert changed
        # Each is wrong once as it was counted and once as it is kept.
        assert await differing(database, sums.ORDERS, "store_1") >= 2 * changed
        await database.execute(double.replace("*", "/"))
    assert await differing(database, sums.ORDERS, "store_1") == 0


async def test_sums_that_are_forgotten_are_dropped_batch_by_batch(database: Database) -> None:
    """Nobody waits for a statement over a whole store, and what comes meanwhile is counted once."""
    await opened(database)
    for id in range(1, 8):
        await ordered(database, id, customer_hash=f"s1:{id}")
    await sums.forget(database, sums.ORDERS, "store_1")
    assert await kept(database, "commerce_buyers") == 7
    assert not await sums.is_whole(database, SHOP)
    assert await told(database) == [("all", "EUR", 7, 7_000, 7_000, 0)]
    await sums.build(database, sums.ORDERS, "store_1", 3)
    assert await kept(database, "commerce_buyers") == 4
    await ordered(database, 8, customer_hash="s1:8")
    await ordered(database, 1, customer_hash="s1:8", total_minor=500)
    await built(database, sums.ORDERS, 3)
    assert await sums.is_whole(database, SHOP)
    assert await differing(database, sums.ORDERS, "store_1") == 0
    assert await told(database) == [("all", "EUR", 8, 7_500, 7_500, 0)]


async def test_the_sums_of_a_store_that_is_gone_are_looked_at_and_not_those_of_one_without_anything(
    database: Database,
) -> None:
    await opened(database)
    assert [one async for one in sums.stores(database)] == []
    await ordered(database, 1, customer_hash=None)
    for table in ("sales", "product_sales", "cohorts", "attribution", "buyers", "spending"):
        await database.execute(f"DELETE FROM commerce_{table}")  # noqa: S608 - names of this test
    await database.execute("INSERT INTO commerce_buyers VALUES ('store_gone', 's1:x', 1)")
    await database.execute(
        "INSERT INTO commerce_counted_refunds"
        " VALUES ('store_lost', 1, 1, now(), 'web', 'EUR', 1), ('store_lost', 2, 1, now(), '', '', 1)"
    )
    assert [one async for one in sums.stores(database)] == ["store_1", "store_gone", "store_lost"]
    assert await differing(database, sums.ORDERS, "store_gone") == 1


async def test_sums_are_built_while_deliveries_go_on(database: Database) -> None:
    await filled(database, 5)
    await sums.forget(database, sums.ORDERS, "store_1")
    assert not await sums.is_whole(database, SHOP)
    counted = await told(database)
    async with anyio.create_task_group() as tasks:
        # One after another, as the store's actor commits them: no other writes an order or a refund of it.
        tasks.start_soon(filled, database, 6, 240)
        await built(database, sums.ORDERS, 3)
    assert await sums.is_whole(database, SHOP)
    assert await differing(database, sums.ORDERS, "store_1") == 0
    assert counted != await told(database) != []


WAITING = """
SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.mark.parametrize("builder_first", [False, True])
@pytest.mark.parametrize(
    "delivery",
    [
        "UPDATE commerce_orders SET source_name = 'pos', customer_hash = 's1:b' WHERE order_id = 1",
        "DELETE FROM commerce_orders WHERE order_id = 1",
        (
            "INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata,"
            " processed_at) VALUES ('store_1', 3, now(), false, '{}', now())"
        ),
        "INSERT INTO commerce_refunds VALUES ('store_1', 8, 2, 'EUR', 70, now(), now())",
    ],
)
async def test_a_delivery_and_who_builds_the_sums_wait_for_each_other(
    database: Database, delivery: str, *, builder_first: bool
) -> None:
    for id in (1, 2):
        await ordered(database, id)
    await refunded(database, 7, 1, 250)
    await sums.forget(database, sums.ORDERS, "store_1")
    build = "SELECT build_sums('store_1', 500)"
    await database.execute(build)  # drops what was kept
    first, second = (build, delivery) if builder_first else (delivery, build)
    async with anyio.create_task_group() as tasks, database.transaction() as tx:
        await tx.execute(first)
        tasks.start_soon(database.execute, second)
        with anyio.fail_after(60):
            while not await tx.fetch(WAITING):
                await anyio.lowlevel.checkpoint()
    assert await sums.is_whole(database, SHOP)
    assert await differing(database, sums.ORDERS, "store_1") == 0


async def test_the_check_sees_a_sum_that_is_wrong(database: Database) -> None:
    await ordered(database, 1)
    await database.execute("UPDATE commerce_sales SET gross_minor = 1 WHERE minutes = 60")
    assert await differing(database, sums.ORDERS, "store_1") == 2
    await sums.forget(database, sums.ORDERS, "store_1")
    await built(database, sums.ORDERS, 500)
    assert await differing(database, sums.ORDERS, "store_1") == 0
    assert await told(database) == [("all", "EUR", 1, 1_000, 1_000, 0)]


@pytest.mark.parametrize(
    ("said", "zone"),
    [("Asia/Kolkata", "Asia/Kolkata"), ("Mars/Olympus", "UTC"), ("", "UTC"), (None, "UTC")],
)
async def test_a_zone_that_the_server_does_not_know_is_utc(
    database: Database, said: str | None, zone: str
) -> None:
    await opened(database)
    assert await sales.zone_of(database, "store_1") == "UTC"  # it has no shop yet
    await database.execute(
        "INSERT INTO store_shops (store_id, shop_domain, facts_at, timezone)"
        " VALUES ('store_1', 'a.example', now(), $1)",
        said,
    )
    assert await sales.zone_of(database, "store_1") == zone
    plan = await database.fetch("EXPLAIN " + sales.ZONE, "store_1")
    assert not any("pg_timezone_names" in line[0] for line in plan)  # it reads 600 files


@pytest.mark.changes_schema
@pytest.mark.parametrize(
    ("zone", "rows_of_a_day"), [("UTC", 24), ("Asia/Kolkata", 27), ("Asia/Kathmandu", 27)]
)
async def test_a_report_of_a_year_reads_hours_and_not_orders(
    database: Database, zone: str, rows_of_a_day: int
) -> None:
    """Where days do not begin on an hour, a quarter of one is read beside them and not four of each."""
    year, days = timedelta(days=365), 20
    await database.execute(
        "INSERT INTO commerce_orders (store_id, order_id, updated_at, currency, total_minor, test,"
        " metadata, processed_at) SELECT 'store_1', n, $1, 'EUR', 1, false, '{}',"
        " $1::timestamptz - interval '1 day' - interval '1 minute' * n FROM generate_series(0, 60 * 24 * $2 - 1) n",
        *(NOW, days),
    )
    await database.execute("ANALYZE commerce_orders, commerce_sales")
    ends = sales._whole(NOW - year, NOW, sales.QUARTER)
    plan = await database.fetch(
        "EXPLAIN (ANALYZE, FORMAT JSON) " + sales.FROM_SUMS,
        SHOP,
        NOW - year,
        NOW,
        "day",
        zone,
        *ends,
    )
    read = scanned(orjson.loads(plan[0][0])[0]["Plan"])
    assert read["commerce_orders"] == 0
    assert read["commerce_sales"] <= days * rows_of_a_day + 8
    row = await store.summary(database, "store_1", SHOP, products=True, orders=True, since=NOW)
    assert row is None  # there is no such store


def scanned(node: dict[str, Any]) -> Counter[str]:
    """Count the rows that a plan read of each table."""
    read = Counter(
        {node.get("Relation Name", ""): round(node["Actual Rows"] * node["Actual Loops"])}
    )
    for one in node.get("Plans", ()):
        read += scanned(one)
    return read
