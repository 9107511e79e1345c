import asyncio
import re
from pathlib import Path

import anyio
import asyncpg
import pytest

from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.migrate import (
    COMPATIBLE_FROM,
    LOCKS,
    Migration,
    MigrationError,
    migrate,
    migrations,
)

FIRST = "CREATE TABLE towns (name text PRIMARY KEY);"
WIDER = "-- It widens.\n-- compatible-from: 0002\n"
SAID_SINCE = 20
"""The last migration from before they said so."""
NEEDED_COLUMN = re.compile(
    r"\bADD COLUMN (?![^,;]*\bDEFAULT\b)(?:IF NOT EXISTS )?(\w+)[^,;]*\bNOT NULL\b"
    r"|\bALTER COLUMN (\w+) SET NOT NULL\b"
)
"""A column that a row of the release before would lack."""
ALONE = "-- Why.\n-- transaction: none\n"
SECOND = "INSERT INTO towns VALUES ('Delft'); SELECT pg_sleep(0.05);"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_towns.sql").write_text(FIRST)
    (tmp_path / "0002_delft.sql").write_text(SECOND)
    return tmp_path


async def value(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_our_own_migrations_build_an_empty_database_up_and_then_rest(
    empty_database_url: str,
) -> None:
    applied = await migrate(empty_database_url)
    assert applied == [step.name for step in migrations()]
    assert await migrate(empty_database_url) == []
    assert await value(empty_database_url, "SELECT count(*) FROM slot_epochs") == 1024


async def test_processes_that_start_together_run_each_migration_once(
    empty_database_url: str, folder: Path
) -> None:
    results = await asyncio.gather(*(migrate(empty_database_url, folder) for _ in range(6)))
    assert sorted(results) == [[], [], [], [], [], ["0001_towns", "0002_delft"]]
    assert await value(empty_database_url, "SELECT count(*) FROM towns") == 1


async def test_what_was_applied_is_recorded_with_its_name_and_time(
    empty_database_url: str, folder: Path
) -> None:
    await migrate(empty_database_url, folder)
    answered = "SELECT string_agg(name, ' ' ORDER BY number) FROM schema_migrations"
    assert await value(empty_database_url, answered) == "0001_towns 0002_delft"
    assert await value(
        empty_database_url, "SELECT bool_and(applied_at <= now()) FROM schema_migrations"
    )


async def test_only_what_is_new_is_applied(empty_database_url: str, folder: Path) -> None:
    await migrate(empty_database_url, folder)
    (folder / "0007_breda.sql").write_text("INSERT INTO towns VALUES ('Breda');")
    assert await migrate(empty_database_url, folder) == ["0007_breda"]


async def test_a_database_that_tells_another_history_than_the_files_is_refused(
    empty_database_url: str, folder: Path
) -> None:
    await migrate(empty_database_url, folder)
    (folder / "0001_towns.sql").unlink()
    with pytest.raises(
        MigrationError, match="has migration 0001_towns, which this release doesn't have"
    ):
        await migrate(empty_database_url, folder)


async def test_an_older_version_starts_on_a_newer_schema_that_says_it_is_compatible(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_mayors.sql").write_text(f"{WIDER}ALTER TABLE towns ADD COLUMN mayor text;")
    (folder / "0004_rivers.sql").write_text(f"{WIDER}CREATE TABLE rivers (name text);")
    assert len(await migrate(empty_database_url, folder)) == 4
    newer = [folder / "0003_mayors.sql", folder / "0004_rivers.sql"]
    for file in newer:  # the version before: in the middle of a roll, or after one that was undone
        file.rename(file.with_suffix(".newer"))
    assert await migrate(empty_database_url, folder) == []
    for file in newer:
        file.with_suffix(".newer").rename(file)
    assert await migrate(empty_database_url, folder) == []


@pytest.mark.parametrize("said", ["", "-- compatible-from: 0003\n"])
async def test_an_older_version_refuses_a_schema_that_asks_for_newer_code_in_one_line(
    empty_database_url: str, folder: Path, said: str
) -> None:
    (folder / "0003_mayors.sql").write_text(f"{WIDER}ALTER TABLE towns ADD COLUMN mayor text;")
    (folder / "0004_fewer.sql").write_text(f"-- Why.\n{said}ALTER TABLE towns DROP COLUMN name;")
    await migrate(empty_database_url, folder)
    (folder / "0003_mayors.sql").unlink()
    (folder / "0004_fewer.sql").unlink()
    with pytest.raises(MigrationError) as refused:
        await migrate(empty_database_url, folder)
    asked = "0003" if said else "0004"
    assert str(refused.value) == (
        "The database has migration 0004_fewer, which this version cannot work with: start one that"
        f" knows migration {asked}."
    )


async def test_a_schema_from_before_migrations_said_what_they_ask_for_asks_for_code_that_knows_it(
    empty_database_url: str, folder: Path
) -> None:
    await migrate(empty_database_url, folder)
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute("ALTER TABLE schema_migrations DROP COLUMN compatible_from")
    finally:
        await connection.close()
    assert await migrate(empty_database_url, folder) == []
    (folder / "0002_delft.sql").unlink()
    with pytest.raises(MigrationError, match=r"cannot work with: start one that knows .* 0002"):
        await migrate(empty_database_url, folder)


async def test_a_migration_cannot_ask_for_code_that_follows_it(folder: Path) -> None:
    (folder / "0003_odd.sql").write_text("-- compatible-from: 0004\nSELECT 1;")
    with pytest.raises(MigrationError, match="0003_odd cannot ask for 0004"):
        migrations(folder)


def test_our_migrations_say_what_they_lock_and_for_how_long_on_a_million_rows() -> None:
    silent = [
        step.name
        for step in migrations()
        if step.number > SAID_SINCE and not LOCKS.search(step.sql)
    ]
    assert not silent, (
        "each needs a line in its opening comment such as -- locks: outbox, for a moment"
    )


def test_our_migrations_say_from_which_version_on_they_can_be_used() -> None:
    silent = [
        step.name
        for step in migrations()
        if step.number > SAID_SINCE and not COMPATIBLE_FROM.search(step.sql)
    ]
    assert not silent, "each needs a line in its opening comment such as -- compatible-from: 0020"


def needed_columns(step: Migration) -> list[str]:
    """Name what a version that a migration says it is compatible with would leave out of its rows."""
    if step.compatible_from == step.number:
        return []
    sql = re.sub(r"--[^\n]*", "", step.sql)
    filled = set(re.findall(r"ALTER COLUMN (\w+) SET DEFAULT", sql))
    named = [one or other for one, other in NEEDED_COLUMN.findall(sql)]
    return [f"{step.name}: {one}" for one in named if one not in filled]


def test_rows_of_the_release_before_need_no_new_column() -> None:
    needed = [column for step in migrations() for column in needed_columns(step)]
    assert not needed, "give it a DEFAULT, or say -- compatible-from: the migration's own number"


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ("ADD COLUMN mayor text", False),
        ("ADD COLUMN mayor text NOT NULL DEFAULT ''", False),
        ("ADD COLUMN mayor text DEFAULT '' NOT NULL", False),
        ("ADD COLUMN mayor text NOT NULL", True),
        ("ADD COLUMN river text DEFAULT '', ADD COLUMN mayor text NOT NULL", True),
        ("ALTER COLUMN mayor SET NOT NULL", True),
    ],
)
def test_a_column_that_must_be_written_asks_for_code_that_writes_it(
    folder: Path, change: str, *, needed: bool
) -> None:
    (folder / "0003_mayors.sql").write_text(f"{WIDER}ALTER TABLE towns {change};")
    assert needed_columns(migrations(folder)[-1]) == (["0003_mayors: mayor"] if needed else [])
    (folder / "0003_mayors.sql").write_text(f"-- It narrows.\nALTER TABLE towns {change};")
    assert needed_columns(migrations(folder)[-1]) == []


async def test_a_migration_with_a_number_in_the_past_is_refused(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0002_delft.sql").rename(folder / "0003_delft.sql")
    await migrate(empty_database_url, folder)
    (folder / "0002_late.sql").write_text("DROP TABLE towns;")
    with pytest.raises(MigrationError, match="0002_late comes too late"):
        await migrate(empty_database_url, folder)


async def test_two_migrations_with_one_number_are_refused_before_anything_runs(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0002_breda.sql").write_text("SELECT 1;")
    with pytest.raises(MigrationError, match="0002_breda and 0002_delft have the same number"):
        await migrate(empty_database_url, folder)
    assert await value(empty_database_url, "SELECT to_regclass('schema_migrations')") is None


async def test_a_file_without_a_number_is_refused(folder: Path) -> None:
    (folder / "towns.sql").write_text("SELECT 1;")
    with pytest.raises(MigrationError, match="not named like"):
        migrations(folder)


async def test_a_failing_migration_leaves_nothing_behind_and_those_before_it_stay(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_broken.sql").write_text("CREATE TABLE half (); SELECT 1 / 0;")
    with pytest.raises(MigrationError, match="0003_broken: DivisionByZeroError"):
        await migrate(empty_database_url, folder)
    assert await value(empty_database_url, "SELECT to_regclass('half')") is None
    assert await value(empty_database_url, "SELECT max(number) FROM schema_migrations") == 2


async def test_a_migration_that_waits_for_a_busy_table_gives_up_and_can_be_run_again(
    empty_database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.migrate.LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr("tolsey.storage.migrate.LOCK_TRIES", 2)
    monkeypatch.setattr("tolsey.storage.migrate.LOCK_PAUSE_SECONDS", 0)
    await migrate(empty_database_url, folder)
    (folder / "0003_mayors.sql").write_text("ALTER TABLE towns ADD COLUMN mayor text;")
    reader = await asyncpg.connect(empty_database_url)
    try:
        async with reader.transaction():
            await reader.fetch("SELECT * FROM towns")
            with pytest.raises(MigrationError, match="0003_mayors: LockNotAvailableError"):
                await migrate(empty_database_url, folder)
    finally:
        await reader.close()
    assert await migrate(empty_database_url, folder) == ["0003_mayors"]


async def test_a_migration_that_waits_for_a_busy_table_lets_the_traffic_behind_it_pass(
    empty_database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.storage.migrate.LOCK_PAUSE_SECONDS", 0.05)
    await migrate(empty_database_url, folder)
    (folder / "0003_mayors.sql").write_text("ALTER TABLE towns ADD COLUMN mayor text;")
    reader, writer = [await asyncpg.connect(empty_database_url) for _ in range(2)]
    waits = "SELECT count(*) FROM pg_locks WHERE relation = 'towns'::regclass AND NOT granted"
    try:
        async with reader.transaction():
            await reader.fetch("SELECT * FROM towns")
            migrating = asyncio.create_task(migrate(empty_database_url, folder))
            with anyio.fail_after(30):
                while not await writer.fetchval(waits):
                    pass
                await writer.execute("INSERT INTO towns VALUES ('Breda')")
        assert await migrating == ["0003_mayors"]
    finally:
        await reader.close()
        await writer.close()


async def test_statements_outside_a_transaction_run_once_each_and_go_on_where_one_failed(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_steps.sql").write_text(
        f"{ALONE}INSERT INTO towns VALUES ('Breda; or ''s Hertogenbosch'); -- one; two\n"  # noqa: S608 - ours
        "CREATE FUNCTION double(n int) RETURNS int LANGUAGE sql AS $$ SELECT n; SELECT n * 2; $$;\n"
        "CREATE TABLE mayors ();\nCREATE INDEX CONCURRENTLY IF NOT EXISTS by_name ON towns (name);"
    )
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute("CREATE TABLE mayors ()")
        with pytest.raises(MigrationError, match="0003_steps: DuplicateTableError"):
            await migrate(empty_database_url, folder)
        assert await connection.fetchval("SELECT double(4)") == 8
        assert await connection.fetchval("SELECT max(number) FROM schema_migrations") == 2
        await connection.execute("DROP TABLE mayors")
        assert await migrate(empty_database_url, folder) == ["0003_steps"]
        assert await connection.fetchval("SELECT count(*) FROM towns") == 2
        assert await connection.fetchval("SELECT count(*) FROM schema_migration_progress") == 0
    finally:
        await connection.close()


async def test_an_invalid_index_that_a_crash_left_is_built_anew(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_rivers.sql").write_text("CREATE TABLE rivers (name text);")
    await migrate(empty_database_url, folder)
    (folder / "0004_key.sql").write_text(
        f"{ALONE}CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS river ON rivers (name);"
    )
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('river')"
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute("INSERT INTO rivers VALUES ('Maas'), ('Maas')")
        with pytest.raises(MigrationError, match="0004_key: UniqueViolationError"):
            await migrate(empty_database_url, folder)
        assert await connection.fetchval(valid) is False
        await connection.execute("DELETE FROM rivers")
        assert await migrate(empty_database_url, folder) == ["0004_key"]
        assert await connection.fetchval(valid) is True
    finally:
        await connection.close()


async def test_an_index_without_a_name_cannot_be_built_concurrently(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_index.sql").write_text(f"{ALONE}CREATE INDEX CONCURRENTLY ON towns (name);")
    with pytest.raises(MigrationError, match="has to say CREATE INDEX CONCURRENTLY IF NOT EXISTS"):
        await migrate(empty_database_url, folder)


async def test_processes_that_start_together_do_not_wait_for_each_other_in_a_concurrent_build(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_index.sql").write_text(
        f"{ALONE}SELECT pg_sleep(0.2);\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS by_name ON towns (name);"
    )
    with anyio.fail_after(60):
        results = await asyncio.gather(*(migrate(empty_database_url, folder) for _ in range(4)))
    assert sorted(len(each) for each in results) == [0, 0, 0, 3]


async def test_a_change_in_batches_commits_each_and_goes_on_after_the_last(
    empty_database_url: str, folder: Path
) -> None:
    await migrate(empty_database_url, folder)
    (folder / "0003_batches.sql").write_text(
        f"{ALONE}-- in batches\n"  # noqa: S608 - ours
        "WITH batch AS (SELECT name FROM towns WHERE name > $1 AND name < 'a' ORDER BY name LIMIT 3),\n"
        "changed AS (UPDATE towns SET name = lower(name) || 1 / (SELECT room FROM rooms)\n"
        "    WHERE name IN (SELECT name FROM batch)),\n"
        "noted AS (UPDATE rooms SET room = room - 1)\n"
        "SELECT max(name) FROM batch;"
    )
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute("CREATE TABLE rooms AS SELECT 2 AS room")
        await connection.execute("INSERT INTO towns SELECT 'T' || n FROM generate_series(1, 9) n")
        with pytest.raises(MigrationError, match="0003_batches: DivisionByZeroError"):
            await migrate(empty_database_url, folder)
        assert await connection.fetchval("SELECT count(*) FROM towns WHERE name < 'a'") == 4
        await connection.execute("UPDATE rooms SET room = 9")
        assert await migrate(empty_database_url, folder) == ["0003_batches"]
        assert await connection.fetchval("SELECT count(*) FROM towns WHERE name < 'a'") == 0
        assert (
            await connection.fetchval("SELECT room FROM rooms") == 6
        )  # two batches, and none left
    finally:
        await connection.close()


async def test_a_migration_may_not_end_its_own_transaction(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_greedy.sql").write_text("CREATE TABLE greed (); COMMIT;")
    with pytest.raises(MigrationError, match="0003_greedy ends the transaction"):
        await migrate(empty_database_url, folder)


async def test_a_database_out_of_reach_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        await migrate(f"postgresql://postgres@/postgres?host={tmp_path}")
