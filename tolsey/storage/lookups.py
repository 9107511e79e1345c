"""Records by their rows, and rows by their keys: what many ask for at once is read in one statement."""

import asyncio
from typing import Any, Final, TypeVar

from tolsey.storage.database import Reader, Row
from tolsey.storage.tables import Table

Record = TypeVar("Record")

MOST_AT_ONCE: Final = 256
"""How many keys share one statement."""


async def record(reader: Reader, table: Table[Record], where: str, *args: Any) -> Record | None:
    """Read the record of the row that meets a condition; None where there is none."""
    found = await records(reader, table, where, *args)
    return found[0] if found else None


async def records(reader: Reader, table: Table[Record], where: str, *args: Any) -> list[Record]:
    """Read the records of the rows that meet a condition, in the order that it ends with."""
    sql = f"SELECT {table.selected} FROM {table.name} WHERE {where}"  # noqa: S608 - names of our own tables
    return [table.read(row) for row in await reader.fetch(sql, *args)]


class Lookups:
    """Reads one row for a key, with all keys that are asked for in the same turn of the loop.

    The statement takes an array for each part of a key, and answers for each key that it finds the
    place in the arrays, counted from 1, as `place`.
    """

    def __init__(self, reader: Reader, statement: str) -> None:
        self._reader = reader
        self._statement = statement
        self._gathered: list[tuple[tuple[Any, ...], asyncio.Future[Row | None]]] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def find(self, *key: Any) -> Row | None:
        """Read one row, or none."""
        loop = asyncio.get_running_loop()
        if not self._gathered or len(self._gathered) >= MOST_AT_ONCE:
            self._gathered = []
            task = loop.create_task(self._read(self._gathered))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)
        row: asyncio.Future[Row | None] = loop.create_future()
        self._gathered.append((key, row))
        return await row

    async def _read(self, asked: list[tuple[tuple[Any, ...], asyncio.Future[Row | None]]]) -> None:
        if asked is self._gathered:
            self._gathered = []
        try:
            arrays = zip(*(key for key, _ in asked), strict=True)
            rows = await self._reader.fetch(self._statement, *(list(one) for one in arrays))
        except Exception as error:  # noqa: BLE001 - whatever it is, everyone who waits is told
            for _, row in asked:
                if not row.done():
                    row.set_exception(error)
            return
        found = {row["place"]: row for row in rows}
        for place, (_, row) in enumerate(asked, start=1):
            if not row.done():
                row.set_result(found.get(place))
