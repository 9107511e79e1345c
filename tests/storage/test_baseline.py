"""The baseline makes the very database that the single migrations make, and only of an empty one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.databases import Servers, copied
from tolsey.storage.database import Connection
from tolsey.storage.migrate import (
    BASELINE,
    MIGRATIONS,
    MigrationError,
    digest_of,
    migrate,
    migrations,
    read_baseline,
)

SCHEMA = {
    "relations": """
        SELECT relname, relkind::text, relpersistence::text, reloptions, relrowsecurity, relreplident::text,
            relacl, pg_get_partkeydef(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace""",
    "columns": """
        SELECT relname, row_number() OVER (PARTITION BY relname ORDER BY attnum), attname,
            format_type(atttypid, atttypmod), attnotnull, attidentity::text, attgenerated::text,
            attstorage::text, attcompression::text, attstattarget, attoptions, attcollation,
            pg_get_expr(adbin, adrelid)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relkind <> 'i'""",
    "indexes": """
        SELECT pg_get_indexdef(indexrelid), indisvalid, indisclustered, indisreplident
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "functions": """
        SELECT pg_get_functiondef(oid), proacl FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prokind IN ('f', 'p')
        AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')""",
    "triggers": "SELECT pg_get_triggerdef(oid), tgenabled::text FROM pg_trigger WHERE NOT tgisinternal",
    "views": "SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')",
    "types": """
        SELECT typname, typtype::text, typnotnull, typdefault,
            ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = pg_type.oid ORDER BY enumsortorder)
        FROM pg_type WHERE typnamespace = 'public'::regnamespace""",
    "sequences": "SELECT sequencename, data_type::text, start_value, increment_by, last_value FROM pg_sequences",
    "comments": """
        SELECT classoid::regclass::text, description,
            pg_describe_object(classoid, objoid, objsubid) FROM pg_description
        WHERE objoid >= 16384""",
    "statistics": "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "policies": "SELECT * FROM pg_policies",
    "extensions": "SELECT extname, extversion, extnamespace::regnamespace::text FROM pg_extension",
    "migrations": "SELECT number, name, compatible_from FROM schema_migrations",
    "progress": "SELECT * FROM schema_migration_progress",
}
"""What two databases are compared by: nothing that only says when or in which order it was made."""


async def read_schema(url: str) -> dict[str, list[Any]]:
    connection: Connection = await asyncpg.connect(url)
    try:
        found = {
            what: sorted(map(repr, await connection.fetch(query))) for what, query in SCHEMA.items()
        }
        counts = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        for (table,) in counts:
            if table != "schema_migrations":
                rows = await connection.fetch(f"SELECT * FROM {table}")  # noqa: S608 - our own names
                found[f"rows of {table}"] = sorted(
                    repr({**one, "id": "random"} if table == "deployment" else one) for one in rows
                )
        return found
    finally:
        await connection.close()


def test_the_baseline_is_made_of_the_migrations_that_it_stands_for() -> None:
    baseline = read_baseline(MIGRATIONS, migrations())
    assert baseline is not None, "run python -m tolsey.storage.baseline, and commit what it wrote"
    assert baseline.sql.count("CREATE TABLE") > 100


async def test_the_baseline_makes_the_database_that_the_single_files_make(
    empty_database_url: str, other_empty_database_url: str
) -> None:
    assert await migrate(empty_database_url, with_baseline=False) == [
        one.name for one in migrations()
    ]
    assert await migrate(other_empty_database_url) == [one.name for one in migrations()]
    single, whole = (
        await read_schema(empty_database_url),
        await read_schema(other_empty_database_url),
    )
    for what, found in single.items():
        assert whole.get(what) == found, what
    assert whole.keys() == single.keys()
    assert len(single["columns"]) > 1000
    assert await migrate(other_empty_database_url) == []


SQUASHED = """
CREATE TABLE schema_migrations (
    number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(),
    compatible_from integer
);
CREATE TABLE towns (name text PRIMARY KEY);
INSERT INTO towns VALUES ('Delft, squashed');
"""


@pytest.fixture
async def other_empty_database_url(servers: Servers) -> AsyncIterator[str]:
    async for url in copied(servers, "template1"):
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of two migrations."""
    (tmp_path / "0001_towns.sql").write_text("CREATE TABLE towns (name text PRIMARY KEY);")
    (tmp_path / "0002_delft.sql").write_text("INSERT INTO towns VALUES ('Delft');")
    return tmp_path


async def squash(folder: Path, url: str) -> None:
    """Write a baseline of the migrations of a folder, for the server of a database."""
    connection: Connection = await asyncpg.connect(url)
    server = connection.get_server_version().major
    await connection.close()
    digest = digest_of(migrations(folder))
    (folder / BASELINE).parent.mkdir(exist_ok=True)
    (folder / BASELINE).write_text(
        f"-- baseline: migration 2, PostgreSQL {server}, sha256 {digest}\n" + SQUASHED
    )


async def towns(url: str) -> list[str]:
    connection: Connection = await asyncpg.connect(url)
    try:
        return [name for (name,) in await connection.fetch("SELECT name FROM towns ORDER BY name")]
    finally:
        await connection.close()


async def test_files_after_the_baseline_are_applied_one_by_one(
    empty_database_url: str, folder: Path
) -> None:
    await squash(folder, empty_database_url)
    (folder / "0003_breda.sql").write_text("INSERT INTO towns VALUES ('Breda');")
    names = ["0001_towns", "0002_delft", "0003_breda"]
    assert await migrate(empty_database_url, folder) == names
    assert await towns(empty_database_url) == ["Breda", "Delft, squashed"]
    assert await migrate(empty_database_url, folder) == []


@pytest.mark.parametrize(
    "held",
    [
        "CREATE TABLE villages ()",
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE mood AS ENUM ('fine')",
        "CREATE SCHEMA county",
        "CREATE SCHEMA county; CREATE TABLE county.villages ()",
    ],
)
async def test_a_database_that_holds_anything_gets_the_single_files(
    empty_database_url: str, folder: Path, held: str
) -> None:
    await squash(folder, empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(held)
    await connection.close()
    assert await migrate(empty_database_url, folder) == ["0001_towns", "0002_delft"]
    assert await towns(empty_database_url) == ["Delft"]


async def test_a_database_that_stopped_between_two_files_gets_the_rest_one_by_one(
    empty_database_url: str, folder: Path
) -> None:
    later = folder / "0002_delft.sql"
    later.rename(later.with_suffix(".later"))
    assert await migrate(empty_database_url, folder) == ["0001_towns"]
    later.with_suffix(".later").rename(later)
    await squash(folder, empty_database_url)
    assert await migrate(empty_database_url, folder) == ["0002_delft"]
    assert await towns(empty_database_url) == ["Delft"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("PostgreSQL ", "PostgreSQL 9"), ("sha256 ", "sha256 0"), ("-- baseline", "-- base")],
    ids=["another server", "other files", "no baseline"],
)
async def test_a_baseline_of_other_files_or_another_server_is_not_used(
    empty_database_url: str, folder: Path, old: str, new: str
) -> None:
    await squash(folder, empty_database_url)
    written = folder / BASELINE
    written.write_text(written.read_text().replace(old, new))
    await migrate(empty_database_url, folder)
    assert await towns(empty_database_url) == ["Delft"]


async def test_a_baseline_that_fails_leaves_nothing_behind(
    empty_database_url: str, folder: Path
) -> None:
    await squash(folder, empty_database_url)
    with (folder / BASELINE).open("a") as written:
        written.write("SELECT 1 / 0;")
    with pytest.raises(MigrationError, match="baseline/schema: DivisionByZeroError"):
        await migrate(empty_database_url, folder)
    (folder / BASELINE).unlink()
    assert await migrate(empty_database_url, folder) == ["0001_towns", "0002_delft"]
