"""SQL for a store's orders; their notes are free text and stay where they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from tolsey.storage.database import Reader, Row
from tolsey.storage.lookups import Lookups
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports.prefixes import MOST, numbers_like

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
COLUMNS: Final = """
order_id, name, currency, total_minor, current_total_minor, financial_status,
coalesce(fulfillment_status, 'unfulfilled') AS fulfillment_status, test, source_name,
CASE WHEN customer_hash LIKE 's1:%' THEN customer_hash END AS customer, processed_at,
created_at_platform, cancelled_at, updated_at, metadata->>'tags' AS tags
"""
"""Older rows hold a digest that is the same in every store: that is no pseudonym of this one."""

MATCHING: Final = """
store_id = $1 AND deleted_at IS NULL
  AND ($3::text IS NULL OR financial_status = $3)
  AND ($4::text IS NULL OR coalesce(fulfillment_status, 'unfulfilled') = $4)
  AND ($5::text IS NULL OR customer_hash = $5)
  AND ($6 OR NOT test)
"""
PAGE: Final = f"""
SELECT {COLUMNS} FROM commerce_orders
WHERE {MATCHING} AND ($7::bigint IS NULL OR order_id < $7)
ORDER BY order_id DESC LIMIT $2
"""  # noqa: S608 - put together from constants
PAGE_OF_TIMES: Final = f"""
SELECT {COLUMNS} FROM commerce_orders
WHERE {MATCHING} AND processed_at >= $7 AND processed_at < $8
  AND ($9::timestamptz IS NULL OR processed_at <= $9 AND (processed_at, order_id) < ($9, $10))
ORDER BY processed_at DESC, order_id DESC LIMIT $2
"""  # noqa: S608 - put together from constants
"""By time, for by number the orders of last year stand behind all that came since."""
BY_ID: Final = f"""
SELECT asked.place, found.* FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY
  AS asked (store_id, order_id, place)
CROSS JOIN LATERAL (
  SELECT {COLUMNS}, parts::text AS parts,
    (SELECT json_agg(one) FROM (
      SELECT refund_id, currency, amount_minor, processed_at FROM commerce_refunds AS refund
      WHERE refund.store_id = asked.store_id AND refund.order_id = asked.order_id
      ORDER BY refund_id LIMIT 100) AS one)::text AS refunds,
    (SELECT json_agg(one) FROM (
      SELECT fulfillment_id, status, shipment_status, tracking_company, updated_at
      FROM commerce_fulfillments AS parcel
      WHERE parcel.store_id = asked.store_id AND parcel.order_id = asked.order_id
      ORDER BY fulfillment_id LIMIT 100) AS one)::text AS parcels
  FROM commerce_orders AS made
  WHERE made.store_id = asked.store_id AND made.order_id = asked.order_id AND deleted_at IS NULL
  LIMIT 1
) AS found
"""  # noqa: S608 - a constant list of columns
"""In one statement: an order is what agents ask for most, and round trips are most of its cost.

The limit keeps the planner from reading all orders of all stores into a join when it knows no better.
"""
NAMED: Final = f"""
SELECT {COLUMNS} FROM commerce_orders WHERE store_id = $1 AND deleted_at IS NULL
  AND order_id IN (
    (SELECT order_id FROM commerce_orders
    WHERE store_id = $1 AND deleted_at IS NULL
      AND lower(ltrim(name, '#')) = lower(ltrim($2, '#'))
    ORDER BY order_id DESC LIMIT $3)
    UNION SELECT $4::bigint
  )
ORDER BY order_id DESC LIMIT $3
"""  # noqa: S608 - a constant list of columns
BEGINNING: Final = """
SELECT order_id FROM commerce_orders
WHERE store_id = $1 AND deleted_at IS NULL
  AND lower(ltrim(name, '#')) ~>=~ lower(ltrim($2, '#'))
  AND lower(ltrim(name, '#')) ~<=~ (lower(ltrim($2, '#')) || U&'\\+10FFFF')
ORDER BY lower(ltrim(name, '#')) USING ~>~, order_id DESC LIMIT $3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Which orders; what is None leaves all of them in. Times are for `page_of_times`."""

    financial_status: str | None = None
    fulfillment_status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    customer: str | None = None
    tests: bool = False


@dataclass(frozen=True, slots=True)
class OrderParts:
    """An order with the money that was given back on it, and its parcels."""

    order: Row
    refunds: list[Mapping[str, Any]]
    parcels: list[Mapping[str, Any]]


async def page(
    database: Reader, shop: ShopKey, wanted: OrderFilter, before: int | None, limit: int
) -> list[Row]:
    """List orders, the latest made first, after an order of the page before."""
    return await database.fetch(PAGE, *_matching(shop, wanted, limit), before)


async def page_of_times(
    database: Reader,
    shop: ShopKey,
    wanted: OrderFilter,
    before: tuple[datetime, int] | None,
    limit: int,
) -> list[Row]:
    """List the orders of some time, the latest first, after an order of the page before."""
    return await database.fetch(
        PAGE_OF_TIMES,
        *_matching(shop, wanted, limit),
        wanted.since or FIRST,
        wanted.until or LAST,
        *(before or (None, None)),
    )


def _matching(shop: ShopKey, wanted: OrderFilter, limit: int) -> tuple[object, ...]:
    return (
        shop,
        limit,
        wanted.financial_status,
        wanted.fulfillment_status,
        wanted.customer,
        wanted.tests,
    )


async def find(lookups: Lookups, shop: ShopKey, order_id: int) -> OrderParts | None:
    """Read one order (`BY_ID`); None when the store has no such order."""
    order = await lookups.find(shop, order_id)
    if order is None:
        return None
    refunds, parcels = (orjson.loads(order[name] or "[]") for name in ("refunds", "parcels"))
    return OrderParts(order, refunds, parcels)


async def named(database: Reader, shop: ShopKey, name: str, limit: int) -> list[Row]:
    """Find orders by their whole name, with or without its sign, or by their id."""
    id = int(name) if name.isascii() and name.isdigit() and int(name) <= MOST else None
    return await database.fetch(NAMED, shop, name, limit, id)


async def ids_like(database: Reader, shop: ShopKey, typed: str, limit: int) -> list[str]:
    """List the ids of orders whose id or name begins as typed."""
    begun = await numbers_like(
        database, "commerce_orders", "order_id", shop=shop, typed=typed, limit=limit
    )
    named = await database.fetch(BEGINNING, shop, typed, limit)
    found = {*begun, *(row["order_id"] for row in named)}
    return [str(id) for id in sorted(found, reverse=True)[:limit]]
