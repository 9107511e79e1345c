"""SQL for imports of orders, and from when on a store's orders are known."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database, Reader
from tolsey.storage.records.commerce.connection import PROVIDER
from tolsey.storage.records.commerce.imports import OrderImport
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.tables import table_of

IMPORTS: Final = table_of(OrderImport)


async def load(
    database: Database, store_ids: Sequence[str]
) -> Mapping[str, tuple[OrderImport, ...]]:
    """Read the imports of stores; a store without any is absent."""
    rows = await database.fetch(
        f"SELECT {IMPORTS.selected} FROM order_imports WHERE store_id = ANY($1::text[])",  # noqa: S608 - names of our own table
        list(store_ids),
    )
    found: dict[str, list[OrderImport]] = defaultdict(list)
    for row in rows:
        found[row["store_id"]].append(IMPORTS.read(row))
    return {store_id: tuple(some) for store_id, some in found.items()}


async def deleted_customers(
    database: Database, shop: ShopKey, customer_ids: Sequence[int]
) -> frozenset[int]:
    """Tell which of these customers were deleted."""
    if not customer_ids:
        return frozenset()
    rows = await database.fetch(
        "SELECT customer_id FROM commerce_customers"
        " WHERE store_id = $1 AND customer_id = ANY($2::bigint[]) AND deleted_at IS NOT NULL",
        shop,
        list(customer_ids),
    )
    return frozenset(row["customer_id"] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOrders:
    """What is known of the orders of the shop that a store is, or was last, connected to.

    `since` is from when on every order is known: the shop's own beginning where `knows_all`, which not
    every shop has told.
    """

    since: datetime | None
    knows_all: bool
    order_import: OrderImport | None


async def known(reader: Reader, store_id: str) -> KnownOrders | None:
    """Say from when on a store's orders are known; None when it was never connected.

    Deliveries come since the connection; an import that was done knows what was before it. What one of a
    connection before this had is known with a gap, and does not count.
    """
    row = await reader.fetchrow(
        f"""
        SELECT c.connected_at AS listening_since, p.shop_created_at, {IMPORTS.selected_of("i")}
        FROM integration_connections c
        LEFT JOIN order_imports i ON i.store_id = c.store_id AND i.shop_domain = c.shop_domain
        LEFT JOIN store_shops p ON p.store_id = c.store_id AND p.shop_domain = c.shop_domain
        WHERE c.store_id = $1 AND c.provider = $2
        """,  # noqa: S608 - names of our own tables
        store_id,
        PROVIDER,
    )
    if row is None:
        return None
    listening_since: datetime = row["listening_since"]
    last = None if row["begun_at"] is None else IMPORTS.read(row)
    counts = last is not None and last.begun_at >= listening_since
    if last is not None and counts and last.knows_all:
        return KnownOrders(since=row["shop_created_at"], knows_all=True, order_import=last)
    since = listening_since
    if last is not None and counts and last.known_since is not None:
        since = min(since, last.known_since)
    return KnownOrders(since=since, knows_all=False, order_import=last)
