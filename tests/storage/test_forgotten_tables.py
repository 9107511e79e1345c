"""A table that erasure forgets is caught: every one that holds words is planted, as it is declared."""

from typing import Any

import pytest

from tests.journeys.canary.spelling import columns, found_in
from tests.storage.test_declarations import SHOP_OF_BUYER, WHOSE, columns_of, planted
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import catalogue, erasure
from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Personal, Table

pytestmark = pytest.mark.slow  # it tests that other tests notice a forgotten table

CANARY = "Cnryfirst Cnrylast"
WORDS = {Personal.FREE_TEXT, Personal.EMAIL}
Owned = list[tuple[Table[Any], Belongs]]


def words_of(table: Table[Any], belongs: Belongs) -> dict[str, Any]:
    """Write a person into the columns of a table that are for words, and in those that are emptied."""
    spoken = {"text": CANARY, "jsonb": f'{{"said": "{CANARY}"}}'}
    return {
        name: spoken[one.sql]
        for name, one in columns_of(table).items()
        if one.sql in spoken
        and (one.personal in WORDS or name in belongs.emptied)
        and name not in table.key
        and name not in {"email", "recipient"}  # by these rows of a user are found
    }


async def found(database: Database) -> set[str]:
    return {
        place.removeprefix("table ").partition(".")[0]
        async for place, said in columns(database)
        if found_in(said, CANARY)
    }


@pytest.mark.parametrize("owner", RowOwner)
@pytest.mark.parametrize("forgets", [slice(0), slice(0, None, 2), slice(1, None, 2)])
async def test_a_table_with_words_that_is_forgotten_is_caught(
    owner: RowOwner, forgets: slice, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything: Owned = erasure._owned(owner)
    for table, belongs in everything:
        await planted(database, table, belongs, **words_of(table, belongs))
    spoken = {table.name for table, belongs in everything if words_of(table, belongs)}
    assert spoken <= await found(database)

    forgotten = everything[forgets]
    kept = [one for one in everything if one not in forgotten]
    monkeypatch.setattr(erasure, "erasures", lambda _: [erasure._erasure(*one) for one in kept])
    whose = (WHOSE, SHOP_OF_BUYER)[: 1 + (owner == RowOwner.BUYER)]
    while await erasure.erase(database, owner, *whose, limit=50):
        pass
    assert await found(database) == {table.name for table, _ in forgotten} & spoken


def test_every_table_that_erasure_goes_to_for_words_is_planted() -> None:
    personal = {
        table.name
        for table in catalogue.declared()
        for one in (*table.shape, *table.besides)
        if one.personal == Personal.FREE_TEXT
        and any(not owner.stays for owner in table.belongs)  # evidence stays, and says so
    }
    spoken = {
        table.name
        for owner in RowOwner
        for table, belongs in erasure._owned(owner)
        if words_of(table, belongs)
    }
    assert personal - spoken == set()
