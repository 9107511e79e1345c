"""Migrations, records and the catalogue of columns say the same of every table."""

import importlib
import pkgutil
from collections import defaultdict
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import pytest

import tolsey.storage
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.deliveries import CommerceOrder
from tolsey.storage.records.commerce.stores import StoreRecord
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.tables import TABLES, Column, Table, table_of

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
EXAMPLES = {
    "bigint": 7,
    "int": 7,
    "boolean": True,
    "jsonb": '{"a": 1}',
    "timestamptz": datetime(2026, 3, 1, tzinfo=UTC),
    "date": date(2026, 3, 1),
}


def of_the_service() -> dict[type[Any], Table[Any]]:
    for module in pkgutil.walk_packages(tolsey.storage.__path__, "tolsey.storage."):
        importlib.import_module(module.name)
    return {
        record: table for record, table in TABLES.items() if record.__module__.startswith("tolsey.")
    }


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
    for table in of_the_service().values():
        declared[table.name] |= {said(table, one) for one in (*table.shape, *table.besides)}
    for name, columns in declared.items():
        assert (name, columns ^ schema[name]) == (name, set())


async def test_every_declared_key_is_unique_in_the_table(database: Database) -> None:
    unique = {(row["name"], tuple(row["columns"])) for row in await database.fetch(UNIQUE)}
    declared = {(one.name, tuple(sorted(one.key))) for one in of_the_service().values() if one.key}
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
