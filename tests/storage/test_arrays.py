import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tolsey.storage.database import Database
from tolsey.storage.runtime.arrays import argument, parameter

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
hostile = st.sampled_from(["", " ", "NULL", "null", '"', "\\", '","', "{}", "a,b", "\\\\x41", "\n"])
numbers = st.integers(-(2**63), 2**63 - 1)


async def read_back(database: Database, kind: str, column: list[Any]) -> list[Any]:
    rows = await database.fetch(
        f"SELECT * FROM unnest({parameter(1, kind)}) WITH ORDINALITY AS r(value, n) ORDER BY n",  # noqa: S608 - a parameter's name
        argument(kind, column),
    )
    return [row["value"] for row in rows]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=st.lists(st.one_of(texts, hostile, st.none()), max_size=6))
async def test_any_texts_arrive_as_they_were(database: Database, column: list[str | None]) -> None:
    assert await read_back(database, "text", column) == column


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=st.lists(st.one_of(numbers, st.none()), max_size=6))
async def test_any_numbers_arrive_as_they_were(
    database: Database, column: list[int | None]
) -> None:
    assert await read_back(database, "bigint", column) == column


async def test_truths_and_documents_arrive_as_they_were(database: Database) -> None:
    assert await read_back(database, "bool", [True, None, False]) == [True, None, False]
    document = '{"why": "a \\"quoted\\" \\\\ path", "list": [1, null]}'
    (found,) = await read_back(database, "jsonb", [document])
    assert json.loads(found) == json.loads(document)


async def test_what_is_no_value_of_the_type_is_refused(database: Database) -> None:
    for kind, column in (("int", ["1);--"]), ("bigint", [2**63]), ("bool", ["maybe"])):
        with pytest.raises(Exception, match=r"invalid input|out of range"):
            await read_back(database, kind, column)
    with pytest.raises(TypeError):
        argument("text", [1])


async def test_a_moment_goes_as_it_is(database: Database) -> None:
    (row,) = await database.fetch("SELECT now() AS at")
    assert parameter(3, "timestamptz") == "$3::timestamptz[]"
    assert await read_back(database, "timestamptz", [row["at"], None]) == [row["at"], None]
