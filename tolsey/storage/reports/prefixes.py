"""Numbers that begin as somebody types them, as ranges that an index of numbers knows."""

from typing import Final

from tolsey.storage.database import Reader
from tolsey.storage.records.commerce.shops import ShopKey

MOST: Final = 2**63 - 1
"""The greatest bigint."""


async def numbers_like(
    database: Reader, table: str, column: str, *, shop: ShopKey, typed: str, limit: int
) -> list[int]:
    """List a store's numbers that begin as typed, the greatest first; all of them where nothing is typed.

    Each range is a statement of its own with its ends as arguments: where the ends come out of a row,
    the planner takes every range for a narrow one and may sort all rows of a wide one.
    """
    found = ranges(typed)
    if not found:
        return []
    arms = (
        f"(SELECT {column} FROM {table} WHERE store_id = $1 AND deleted_at IS NULL"  # noqa: S608 - names of our own tables
        f" AND {column} BETWEEN ${first} AND ${first + 1} ORDER BY {column} DESC LIMIT $2)"
        for first in range(3, 3 + 2 * len(found), 2)
    )
    each = " UNION ALL ".join(arms)
    sql = f"SELECT {column} FROM ({each}) AS begun ORDER BY {column} DESC LIMIT $2"  # noqa: S608 - as above
    ends = (end for pair in found for end in pair)
    return [row[column] for row in await database.fetch(sql, shop, limit, *ends)]


def ranges(typed: str) -> list[tuple[int, int]]:
    """Give the first and last number of each length that begin as typed; of nothing typed, all."""
    if not typed:
        return [(0, MOST)]
    if not (typed.isascii() and typed.isdigit()) or typed.startswith("0"):
        return []
    begun, size = int(typed), 1
    found = list[tuple[int, int]]()
    while begun * size <= MOST:
        found.append((begun * size, min(begun * size + size - 1, MOST)))
        size *= 10
    return found
