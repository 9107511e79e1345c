"""Numbers that begin as somebody types them, as ranges that an index of numbers knows."""

from typing import Final

MOST: Final = 2**63 - 1
"""The greatest bigint."""


def ranges(typed: str) -> tuple[list[int], list[int]]:
    """Give the first and last numbers of each length that begin as typed; of nothing typed, all."""
    if not typed:
        return [0], [MOST]
    if not (typed.isascii() and typed.isdigit()) or typed.startswith("0"):
        return [], []
    begun, firsts, lasts = int(typed), list[int](), list[int]()
    size = 1
    while begun * size <= MOST:
        firsts.append(begun * size)
        lasts.append(min(begun * size + size - 1, MOST))
        size *= 10
    return firsts, lasts


def numbered(table: str, column: str) -> str:
    """Write the statement that reads a store's newest numbers in `ranges`, the third and fourth arguments."""
    return f"""
        SELECT found.{column} FROM unnest($3::bigint[], $4::bigint[]) AS range(first, last)
        CROSS JOIN LATERAL (
            SELECT {column} FROM {table} WHERE store_id = $1 AND deleted_at IS NULL
              AND {column} BETWEEN range.first AND range.last
            ORDER BY {column} DESC LIMIT $2
        ) AS found
        ORDER BY found.{column} DESC LIMIT $2
    """  # noqa: S608 - names of our own tables
