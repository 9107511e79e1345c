"""SQL that erases what is kept of an owner, as each table's declaration says it, in bounded batches."""

from functools import cache
from typing import Any

from tolsey.storage.database import Database
from tolsey.storage.lifecycle.catalogue import declared
from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Table


@cache
def erasures(owner: RowOwner) -> tuple[str, ...]:
    """Write what erases a batch of an owner's rows of each table; nothing is left once it finds none.

    What the database counts of rows goes after those, and rows are deleted before any is emptied: those of
    some tables are found by what another says.
    """
    return tuple(_erasure(table, belongs) for table, belongs in _owned(owner))


def _owned(owner: RowOwner) -> list[tuple[Table[Any], Belongs]]:
    owned = [
        (table, one)
        for table in declared()
        for one in table.belongs
        if one.to == owner and not one.stays
    ]
    return sorted(owned, key=lambda pair: (bool(pair[1].emptied), not pair[0].export))


@cache
def findings(owner: RowOwner) -> tuple[str, ...]:
    """Write how an owner's rows are found, in each table that has some."""
    return tuple(_found(table, belongs) for table, belongs in _owned(owner))


async def left(database: Database, owner: RowOwner, *whose: str) -> int:
    """Count what is still to be erased of an owner."""
    found = 0
    for table, belongs in _owned(owner):
        row = await database.fetchrow(f"SELECT count(*) AS n {_found(table, belongs)}", *whose)
        found += int(row["n"]) if row else 0
    return found


def _erasure(table: Table[Any], belongs: Belongs) -> str:
    limit = "$3" if belongs.to == RowOwner.BUYER else "$2"
    act = f"DELETE FROM {table.name}"  # noqa: S608 - names of our own tables
    if belongs.emptied:
        sets = ", ".join(f"{name} = {left}" for name, left in belongs.emptied.items())
        act = f"UPDATE {table.name} SET {sets}"  # noqa: S608
    # A row that was changed meanwhile lies elsewhere, and is found by the next batch.
    return f"{act} WHERE ctid = ANY(ARRAY(SELECT ctid {_found(table, belongs)} LIMIT {limit}))"


def _found(table: Table[Any], belongs: Belongs) -> str:
    found = f"FROM {table.name} WHERE {belongs.condition}"
    if not belongs.emptied:
        return found
    full = (f"{name} IS DISTINCT FROM {left}" for name, left in belongs.emptied.items())
    return f"{found} AND ({' OR '.join(full)})"


async def erase(database: Database, owner: RowOwner, *whose: str, limit: int) -> int:
    """Erase a batch of what is kept of an owner; answer how many rows it was, none when nothing is left."""
    erased = 0
    for sql in erasures(owner):
        erased += await database.execute(sql, *whose, limit - erased)
        if erased >= limit:
            break
    return erased
