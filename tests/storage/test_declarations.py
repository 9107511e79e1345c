"""Migrations, records and the catalogue of columns say the same of every table."""

import re
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from tolsey.storage.database import Database
from tolsey.storage.lifecycle import catalogue, erasure, exports, retention
from tolsey.storage.owners import NAMED_BY, OF_USER, Belongs, RowOwner
from tolsey.storage.records.commerce.deliveries import CommerceOrder
from tolsey.storage.records.commerce.stores import StoreRecord
from tolsey.storage.records.selling.deals import EVIDENCE
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.tables import Column, Personal, Table, bare, table_of

SCHEMA = """
SELECT c.relname AS name, a.attname AS column, NOT a.attnotnull AS nullable,
    format_type(a.atttypid, NULL) AS kind
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
    AND c.relname NOT LIKE 'test\\_%'
"""
"""Leaves out the tables of the runtime's test actors."""
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
    "numeric": Decimal("9.90"),
    "bytea": b"7",
    "vector": "[1,2]",
    "tsvector": "'word':1",
    "uuid": UUID(int=7),
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
    for table in catalogue.declared():
        declared[table.name] |= {said(table, one) for one in (*table.shape, *table.besides)}
    for name, columns in declared.items():
        assert (name, columns ^ schema[name]) == (name, set())


async def test_every_declared_key_is_unique_in_the_table(database: Database) -> None:
    unique = {(row["name"], tuple(row["columns"])) for row in await database.fetch(UNIQUE)}
    declared = {(one.name, tuple(sorted(one.key))) for one in catalogue.declared() if one.key}
    assert declared - unique == set()


@pytest.mark.changes_schema
@pytest.mark.parametrize(
    "record",
    [table.record for table in catalogue.declared() if table.record is not dict],
    ids=lambda record: record.__name__,
)
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
    declared = {table.name for table in catalogue.declared()}
    assert declared ^ set(await kept(database)) == set()


def test_what_grows_old_is_swept_by_a_job() -> None:
    declared = {sql for table in catalogue.declared() for sql in retention.deletions(table)}
    swept = {sql for statements in retention.SWEPT.values() for sql in statements}
    swept |= {*retention.WEBHOOK_DELIVERIES, *retention.AUDIT_LOG}
    assert swept - declared == {retention.REVIEW_GRANTS}
    assert declared - swept == set()


def test_a_table_says_whose_its_rows_are_and_whether_an_export_has_them() -> None:
    with pytest.raises(TypeError, match="whose its rows are"):
        bare("kept", {"id": str}, key=("id",))
    with pytest.raises(TypeError, match="an export"):
        bare("kept", {"id": str, "user_id": str}, key=("id",), belongs=OF_USER)


def test_rows_of_an_owner_are_declared_and_named_once() -> None:
    owned = [(table.name, one.to) for table in catalogue.declared() for one in table.belongs]
    named = [table.export for table in catalogue.declared() if table.export]
    assert sorted(owned) == sorted(set(owned))
    assert sorted(named) == sorted(set(named))


NAMES_SOMEBODY = {
    Personal.USER: {RowOwner.USER, RowOwner.ORGANIZATION},
    Personal.EMAIL: {RowOwner.USER},
    Personal.PSEUDONYM: {RowOwner.SHOP, RowOwner.STORE},
    Personal.FREE_TEXT: set(RowOwner),
}


def test_a_column_that_says_something_of_people_is_in_a_table_of_somebody() -> None:
    for table in catalogue.declared():
        owners = {one.to for one in table.belongs}
        for one in (*table.shape, *table.besides):
            if one.personal:
                assert owners & NAMES_SOMEBODY[one.personal], f"{table.name}.{one.name}"


def columns_of(table: Table[Any]) -> dict[str, Column]:
    return {one.name: one for one in (*table.shape, *table.besides)}


async def planted(database: Database, table: Table[Any], belongs: Belongs, **told: Any) -> None:
    """Put a row of an owner into a table, with what columns are told to say."""
    columns = columns_of(table)
    values = {name: example(one) for name, one in columns.items() if name not in GENERATED} | told
    by = belongs.by or NAMED_BY[belongs.to]
    if kind := re.match(r"kind = '(\w+)' AND (\w+) = ", by):
        values |= {"kind": kind[1], kind[2]: WHOSE}
    elif listed := re.match(r"(\w+) @> ARRAY", by):
        values[listed[1]] = (WHOSE,)
    elif by.startswith("namespace"):
        values["namespace"] = f"messages:{WHOSE}"
    elif found := re.search(r"(\w+) (?:IN|=) \(SELECT (\w+)", by):
        if columns[found[1]].sql == "text":  # as that other row's example has it
            values[found[1]] = found[2]
    elif "(subject, '/')" in by:
        values |= {"store_id": "store", "subject": "order/7"}
    else:
        values[(re.search(r"(\w+) = \$1", by) or [by, by])[1]] = WHOSE
    if belongs.to == RowOwner.BUYER and "split_part" not in by:
        values["store_id"] = SHOP_OF_BUYER
    places = ", ".join(
        f"${n}::text::vector" if columns[name].sql == "vector" else f"${n}"
        for n, name in enumerate(values, 1)
    )
    async with database.transaction() as tx:
        for check in await tx.fetch(CHECKS, table.name):
            await tx.execute(f"ALTER TABLE {table.name} DROP CONSTRAINT {check['name']}")
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(
            f"INSERT INTO {table.name} ({', '.join(values)}) OVERRIDING SYSTEM VALUE VALUES ({places})",  # noqa: S608 - of this test
            *values.values(),
        )


async def left_of(database: Database, table: Table[Any], belongs: Belongs) -> int:
    whose = [WHOSE, SHOP_OF_BUYER][: 1 + ("$2" in belongs.condition)]
    row = await database.fetchrow(
        f"SELECT count(*) AS n FROM {table.name} WHERE {belongs.condition}",  # noqa: S608 - of this test
        *whose,
    )
    assert row is not None
    return int(row["n"])


GENERATED = {"spent"}
WHOSE = "of somebody"
SHOP_OF_BUYER = "store@shop"


@pytest.mark.changes_schema
@pytest.mark.parametrize("owner", RowOwner)
async def test_what_is_of_an_owner_is_exported_and_then_erased_as_declared(
    owner: RowOwner, database: Database
) -> None:
    owned = [
        (table, one) for table in catalogue.declared() for one in table.belongs if one.to == owner
    ]
    for table, belongs in owned:
        await planted(database, table, belongs)
    for table, belongs in owned:
        assert (table.name, await left_of(database, table, belongs)) == (table.name, 1)
    whose = (WHOSE, SHOP_OF_BUYER)[: 1 + (owner == RowOwner.BUYER)]
    for table, belongs in exports.sections(owner):
        (row,) = [one async for one in exports.rows(database, table, belongs, *whose)]
        assert not row.keys() & {one.name for one in (*table.shape, *table.besides) if one.sealed}
    while await erasure.erase(database, owner, *whose, limit=7):
        pass
    for table, belongs in owned:
        rows = await database.fetch(f"SELECT * FROM {table.name}")  # noqa: S608 - of this test
        assert (table.name, len(rows)) == (table.name, bool(belongs.stays or belongs.emptied))
        for name in belongs.emptied:
            column = columns_of(table)[name]
            if column.sql != "timestamptz":  # an earlier moment stays
                assert rows[0][name] != example(column), f"{table.name}.{name}"


def test_every_column_that_names_a_person_says_so() -> None:
    """And every secret one: what tables and columns are called gives most of them away."""
    for table in catalogue.declared():
        for one in (*table.shape, *table.besides):
            place = f"{table.name}.{one.name}"
            assert bool(PEOPLE.search(place)) <= (one.personal is not None), place
            assert bool(SECRETS.search(place)) <= one.sealed, place


def test_the_page_for_operators_has_the_catalogue() -> None:
    found = catalogue.WRITTEN.search(catalogue.PAGE.read_text())
    assert found is not None
    assert found[0] == catalogue.written(), "python -m tolsey.storage.lifecycle.catalogue writes it"


TOMBSTONES = {("commerce_customers", "customer_id")}
"""What an emptied row keeps, so that an older delivery does not bring its buyer back."""
TELLING = {Personal.EMAIL, Personal.FREE_TEXT}


def personal_columns() -> list[tuple[Any, Column]]:
    return [
        (table, one)
        for table in catalogue.declared()
        for one in (*table.shape, *table.besides)
        if one.personal
    ]


def test_what_tells_of_anyone_goes_with_an_owner_or_by_its_age() -> None:
    kept = [
        f"{table.name}.{one.name}"
        for table, one in personal_columns()
        if one.personal in TELLING
        and all(fate.endswith(": stays") for fate in catalogue.fates(table, one.name))
        and not any(owner.stays == EVIDENCE for owner in table.belongs)
    ]
    assert kept == []


def test_an_owner_whose_rows_are_emptied_leaves_nothing_that_tells_of_anyone() -> None:
    left = {
        (table.name, one.name)
        for table, one in personal_columns()
        for owner in table.belongs
        if owner.emptied
        and one.name not in owner.emptied
        and (
            one.personal in TELLING
            or (owner.to == RowOwner.BUYER and one.personal == Personal.PSEUDONYM)
        )
    }
    assert left == TOMBSTONES
