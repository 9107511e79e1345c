"""Migrations, records and the catalogue of columns say the same of every table."""

import importlib
import pkgutil
import re
from collections import defaultdict
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest

import tolsey.storage
from tolsey.storage import retention
from tolsey.storage.commerce import exports
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.deliveries import CommerceOrder
from tolsey.storage.records.commerce.stores import StoreRecord
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.tables import BARE, TABLES, Column, Sealed, Table, bare, table_of

SCHEMA = """
SELECT c.relname AS name, a.attname AS column, NOT a.attnotnull AS nullable,
    format_type(a.atttypid, NULL) AS kind
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
"""
UNIQUE = """
SELECT i.indrelid::regclass::text AS name, ARRAY(
    SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = ANY(i.indkey)
    ORDER BY 1) AS columns
FROM pg_index i WHERE i.indisunique AND i.indpred IS NULL
"""
CHECKS = """
SELECT conname AS name FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype = 'c'
"""
SPELLED = {"int": "integer", "timestamptz": "timestamp with time zone"}
PEOPLE = re.compile(
    r"(?<!verified_)email|user_id|commerce_\w+\.customer_(id|hash)$|pseudonym|connected_by|created_by|ended_by|text$"
)
SECRETS = re.compile(r"secret|token_hash|code_hash|password_hash|salt|access_token")
EXAMPLES = {
    "bigint": 7,
    "int": 7,
    "boolean": True,
    "text[]": ("one", "two"),
    "jsonb": '{"a": 1}',
    "timestamptz": datetime(2026, 3, 1, tzinfo=UTC),
    "date": date(2026, 3, 1),
    "bytea": b"7",
}


def of_the_service() -> dict[type[Any], Table[Any]]:
    for module in pkgutil.walk_packages(tolsey.storage.__path__, "tolsey.storage."):
        importlib.import_module(module.name)
    return {
        record: table for record, table in TABLES.items() if record.__module__.startswith("tolsey.")
    }


def every_table() -> list[Table[Any]]:
    return [*of_the_service().values(), *BARE]


def said(table: Table[Any], column: Column) -> tuple[str, str, bool]:
    """Spell a column as PostgreSQL does; one that is written when it is absent is never null."""
    nullable = column.nullable and column.name not in table.absent
    return column.name, SPELLED.get(column.sql, column.sql), nullable


def example(column: Column) -> Any:
    """Make up a value of a column; two texts that were mixed up would show."""
    if isinstance(column.restore, type) and issubclass(column.restore, Enum):
        return list(column.restore)[-1]
    return column.name if column.sql == "text" else EXAMPLES[column.sql]


async def kept(database: Database) -> dict[str, set[tuple[str, str, bool]]]:
    found = defaultdict(set)
    for row in await database.fetch(SCHEMA):
        found[row["name"]].add((row["column"], row["kind"], row["nullable"]))
    return found


async def test_every_column_of_a_declared_table_is_declared_as_it_is(database: Database) -> None:
    schema = await kept(database)
    declared: dict[str, set[tuple[str, str, bool]]] = defaultdict(set)
    for table in every_table():
        declared[table.name] |= {said(table, one) for one in (*table.shape, *table.besides)}
    for name, columns in declared.items():
        assert (name, columns ^ schema[name]) == (name, set())


async def test_every_declared_key_is_unique_in_the_table(database: Database) -> None:
    unique = {(row["name"], tuple(row["columns"])) for row in await database.fetch(UNIQUE)}
    declared = {(one.name, tuple(sorted(one.key))) for one in every_table() if one.key}
    assert declared - unique == set()


@pytest.mark.parametrize("record", of_the_service(), ids=lambda record: record.__name__)
async def test_what_is_written_of_a_record_is_what_is_read(
    record: type[Any], database: Database
) -> None:
    table = table_of(record)
    made = table.read({one.name: example(one) for one in table.shape})
    checks = await database.fetch(CHECKS, table.name)
    async with database.transaction() as tx:
        for check in checks:
            await tx.execute(f"ALTER TABLE {table.name} DROP CONSTRAINT {check['name']}")
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(table.insert, *table.values_of(made))
        row = await tx.fetchrow(f"SELECT {table.selected} FROM {table.name}")  # noqa: S608 - of this test
    assert table.read(row) == made


def test_a_row_in_any_order_is_the_same_record() -> None:
    table = table_of(StoreRecord)
    store = StoreRecord(
        id="id",
        organization_id="org",
        name="name",
        sealed_salt="salt",
        created_at=datetime.now(UTC),
    )
    row = dict(zip(table.columns, table.values_of(store), strict=True))
    assert table.read(dict(reversed(row.items()))) == table.read(row) == store


def test_a_row_that_lacks_a_column_is_no_record() -> None:
    with pytest.raises(KeyError, match="order_id"):
        table_of(CommerceOrder).read({"store_id": "store_1"})


def test_a_word_of_an_enum_comes_back_as_the_enum() -> None:
    row = dict.fromkeys(table_of(ListingRecord).columns) | {"status": "SOLD"}
    assert table_of(ListingRecord).read(row).status is ListingStatus.SOLD


async def test_every_table_is_declared_and_every_declared_table_is_there(
    database: Database,
) -> None:
    declared = {table.name for table in every_table()}
    assert declared ^ set(await kept(database)) == set()


def test_what_grows_old_is_swept_by_a_job() -> None:
    declared = {sql for table in every_table() for sql in retention.deletions(table)}
    swept = {sql for statements in retention.SWEPT.values() for sql in statements}
    swept |= {*retention.WEBHOOK_DELIVERIES, *retention.AUDIT_LOG}
    assert swept - declared == {retention.REVIEW_GRANTS}
    assert declared - swept == set()


def test_what_is_exported_of_a_store_is_what_its_tables_declare() -> None:
    assert {table.export for table in every_table() if table.export} == {
        table.export for table in (*exports.OF_STORES, *exports.OF_SHOPS)
    }


def test_a_table_with_secrets_cannot_be_exported() -> None:
    with pytest.raises(TypeError, match="secrets"):
        bare("kept", {"id": str, "token": Annotated[str, Sealed]}, key=("id",), export="kept")


def test_every_column_that_names_a_person_says_so() -> None:
    """And every secret one: what tables and columns are called gives most of them away."""
    for table in every_table():
        for one in (*table.shape, *table.besides):
            place = f"{table.name}.{one.name}"
            assert bool(PEOPLE.search(place)) <= (one.personal is not None), place
            assert bool(SECRETS.search(place)) <= one.sealed, place


def test_the_page_for_operators_lists_what_is_kept_of_people() -> None:
    page = Path(__file__).parents[2] / "docs" / "operate" / "personal-data.md"
    listed = set(re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\w+) \|", page.read_text(), re.MULTILINE))
    assert listed == {
        (table.name, one.name, one.personal.value)
        for table in every_table()
        for one in (*table.shape, *table.besides)
        if one.personal
    }
