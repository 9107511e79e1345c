"""SQL for taking out everything that is kept of an owner, a page at a time."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import orjson

from tolsey.storage.database import LONGEST_SECONDS, Reader, Row, patience
from tolsey.storage.errors import StorageBusy, StorageOverdue
from tolsey.storage.lifecycle.catalogue import declared
from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Table

PAGE = 500
PAUSE_SECONDS = 0.5


def sections(owner: RowOwner) -> Iterator[tuple[Table[Any], Belongs]]:
    """List the tables whose rows an owner's export has."""
    for table in declared():
        for belongs in table.belongs:
            if table.export and belongs.to == owner:
                yield table, belongs


def queries(owner: RowOwner) -> tuple[str, ...]:
    """Write how an owner's export finds its rows, in each table that has some."""
    return tuple(f"FROM {table.name} WHERE {one.condition}" for table, one in sections(owner))


async def staying(reader: Reader, owner: RowOwner, whose: str) -> list[tuple[str, str]]:
    """List what an owner has that stays when they go: by its name in their export, and why it stays."""
    found = []
    for table, belongs in sections(owner):
        if belongs.stays and await reader.fetch(
            f"SELECT FROM {table.name} WHERE {belongs.condition} LIMIT 1",
            whose,
        ):
            found.append((str(table.export), belongs.stays))
    return found


async def rows(
    reader: Reader, table: Table[Any], belongs: Belongs, *whose: str
) -> AsyncIterator[Any]:
    """Read an owner's rows of a table, in order, without holding a connection between pages.

    What is secret is not in them, nor the key that a shop's rows are kept under.
    """
    left_out = {"store_id"} if belongs.to in {RowOwner.SHOP, RowOwner.BUYER} else set()
    told = ", ".join(f"'{one}', {one}" for one in table.told if one not in left_out)
    key = [one for one in table.key or table.appended if one not in left_out]
    columns = ", ".join(key)
    after: list[Any] = []
    while True:
        places = [f"${place}" for place in range(len(whose) + 1, len(whose) + len(after) + 2)]
        bounds = ", ".join(places[1:])
        page = await _page(
            reader,
            f"""
            SELECT jsonb_build_object({told}) AS item, {columns} FROM {table.name}
            WHERE {belongs.condition} {f"AND ({columns}) > ({bounds})" if after else ""}
            ORDER BY {columns} LIMIT {places[0]}
            """,  # noqa: S608 - names of our own tables
            *whose,
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
