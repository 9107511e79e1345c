"""Rows that many ask for at once are read together, and nobody gets another's."""

import asyncio
from typing import Any

import anyio
import pytest

from tolsey.storage.database import Database, Row
from tolsey.storage.errors import StorageError
from tolsey.storage.lookups import MOST_AT_ONCE, Lookups

SQUARES = """
SELECT asked.place, asked.number * asked.number AS square
FROM unnest($1::integer[]) WITH ORDINALITY AS asked (number, place) WHERE asked.number > 0
"""


class Counted:
    """Reads in the database, and notes how many keys each statement carried."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.carried: list[int] = []

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        self.carried.append(len(args[0]))
        return await self._database.fetch(sql, *args)

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        return await self._database.fetchrow(sql, *args)


@pytest.fixture
def reader(database: Database) -> Counted:
    return Counted(database)


async def squares(lookups: Lookups, *numbers: int) -> list[int | None]:
    with anyio.fail_after(60):
        rows = await asyncio.gather(*(lookups.find(number) for number in numbers))
    return [None if row is None else row["square"] for row in rows]


async def test_those_who_ask_at_once_share_a_statement_and_get_each_their_own(
    reader: Counted,
) -> None:
    lookups = Lookups(reader, SQUARES)
    assert await squares(lookups, 3, 0, 2, 3) == [9, None, 4, 9]
    assert await squares(lookups, 5) == [25]
    assert reader.carried == [4, 1]


async def test_a_statement_carries_a_bounded_number_of_keys(reader: Counted) -> None:
    numbers = range(1, MOST_AT_ONCE + 3)
    found = await squares(Lookups(reader, SQUARES), *numbers)
    assert found == [number * number for number in numbers]
    assert reader.carried == [MOST_AT_ONCE, 2]


async def test_one_who_gives_up_takes_nothing_from_the_others(reader: Counted) -> None:
    lookups = Lookups(reader, SQUARES)
    first, second = (asyncio.ensure_future(lookups.find(number)) for number in (7, 8))
    await asyncio.sleep(0)
    first.cancel()
    with anyio.fail_after(60):
        row = await second
    assert row is not None
    assert row["square"] == 64
    assert first.cancelled()


async def test_a_statement_that_fails_is_told_to_all_who_wait_and_to_nobody_after(
    reader: Counted,
) -> None:
    lookups = Lookups(reader, SQUARES)
    largest = 2**31 - 1  # its square is no integer of PostgreSQL's
    with anyio.fail_after(60):
        failed = await asyncio.gather(
            *(lookups.find(number) for number in (largest, 2)), return_exceptions=True
        )
    assert [type(one) for one in failed] == [StorageError, StorageError]
    assert await squares(lookups, 2) == [4]
