"""SQL for taking out everything that is kept about a store, a page at a time."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson

from tolsey.storage.database import Database, patience

PAGE = 500


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an export: a table, and the columns that order its rows within a store."""

    name: str
    table: str
    key: tuple[str, ...]
    number: bool = True


SECTIONS = (
    Section("facts", "facts", ("id",), number=False),
    Section("messages", "messages", ("id",), number=False),
    Section("products", "commerce_products", ("product_id",)),
    Section("orders", "commerce_orders", ("order_id",)),
    Section("refunds", "commerce_refunds", ("refund_id",)),
    Section("fulfillments", "commerce_fulfillments", ("fulfillment_id",)),
    Section("customers", "commerce_customers", ("customer_id",)),
    Section("inventoryLevels", "commerce_inventory_levels", ("inventory_item_id", "location_id")),
)
"""Rows with key material are not among them: the connection is exported as its public view."""

SMALLEST = -(2**63)


async def rows(database: Database, section: Section, store_id: str) -> AsyncIterator[Any]:
    """Read a section of a store, in order, without holding a connection between pages."""
    columns = ", ".join(section.key)
    cast = "bigint" if section.number else "text"
    after: list[Any] = [SMALLEST if section.number else ""] * len(section.key)
    bounds = ", ".join(f"${place}::{cast}" for place in range(3, 3 + len(after)))
    while True:
        with patience(None):  # what is exported may be much
            page = await database.fetch(
                f"""
                SELECT to_jsonb(kept) - 'store_id' AS item, {columns}
                FROM {section.table} AS kept
                WHERE store_id = $1 AND ({columns}) > ({bounds})
                ORDER BY {columns} LIMIT $2
                """,  # noqa: S608 - constants of this module
                store_id,
                PAGE,
                *after,
            )
        for row in page:
            yield orjson.loads(row["item"])
        if len(page) < PAGE:
            return
        after = [page[-1][column] for column in section.key]
