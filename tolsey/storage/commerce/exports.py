"""SQL for taking out everything that is kept about a store, a page at a time."""

from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import orjson

from tolsey.storage.database import LONGEST_SECONDS, Reader, Row, patience
from tolsey.storage.errors import StorageBusy, StorageOverdue
from tolsey.storage.records.chat import FACTS, MESSAGES
from tolsey.storage.records.commerce.deliveries import (
    AttributionTouch,
    CommerceCustomer,
    CommerceFulfillment,
    CommerceInventoryLevel,
    CommerceOrder,
    CommerceProduct,
    CommerceRefund,
)
from tolsey.storage.tables import Table, table_of

PAGE = 500
PAUSE_SECONDS = 0.5


OF_STORES: Final = (FACTS, MESSAGES)
OF_SHOPS: Final[tuple[Table[Any], ...]] = tuple(
    map(
        table_of,
        (
            CommerceProduct,
            CommerceOrder,
            AttributionTouch,
            CommerceRefund,
            CommerceFulfillment,
            CommerceCustomer,
            CommerceInventoryLevel,
        ),
    )
)
"""What is kept of the shop that a store is connected to.

Rows with key material are not among them: the connection is exported as its public view."""

SMALLEST = -(2**63)


async def rows(reader: Reader, section: Table[Any], whose: str) -> AsyncIterator[Any]:
    """Read a section of a store, or of its shop by its key, in order, without holding a connection between pages."""
    key = [one for one in section.key if one != "store_id"]
    columns = ", ".join(key)
    cast = section.columns[key[0]]
    after: list[Any] = [SMALLEST if cast == "bigint" else ""] * len(key)
    bounds = ", ".join(f"${place}::{cast}" for place in range(3, 3 + len(after)))
    while True:
        page = await _page(
            reader,
            f"""
            SELECT to_jsonb(kept) - 'store_id' AS item, {columns}
            FROM {section.name} AS kept
            WHERE store_id = $1 AND ({columns}) > ({bounds})
            ORDER BY {columns} LIMIT $2
            """,  # noqa: S608 - constants of this module
            whose,
            PAGE,
            *after,
        )
        for row in page:
            yield orjson.loads(row["item"])
        if len(page) < PAGE:
            return
        after = [page[-1][column] for column in key]


async def _page(reader: Reader, sql: str, *args: Any) -> list[Row]:
    """Read a page however long others' reports take: a document that breaks off is none."""
    until = anyio.current_time() + LONGEST_SECONDS
    while True:
        try:
            with patience(None):
                return await reader.fetch(sql, *args)
        except (StorageBusy, StorageOverdue):
            if anyio.current_time() > until:
                raise
            await anyio.sleep(PAUSE_SECONDS)
