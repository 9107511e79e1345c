import asyncio
from pathlib import Path

import asyncpg
import pytest

from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.migrate import MigrationError, migrate, migrations

FIRST = "CREATE TABLE towns (name text PRIMARY KEY);"
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
    told = "SELECT string_agg(name, ' ' ORDER BY number) FROM schema_migrations"
    assert await value(empty_database_url, told) == "0001_towns 0002_delft"
    assert await value(
        empty_database_url, "SELECT bool_and(applied_at <= now()) FROM schema_migrations"
    )


async def test_only_what_is_new_is_applied(empty_database_url: str, folder: Path) -> None:
    await migrate(empty_database_url, folder)
    (folder / "0007_breda.sql").write_text("INSERT INTO towns VALUES ('Breda');")
    assert await migrate(empty_database_url, folder) == ["0007_breda"]


async def test_a_database_newer_than_the_files_is_refused(
    empty_database_url: str, folder: Path
) -> None:
    await migrate(empty_database_url, folder)
    (folder / "0001_towns.sql").unlink()
    with pytest.raises(MigrationError, match="has migration 0001_towns"):
        await migrate(empty_database_url, folder)


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


async def test_a_migration_may_not_end_its_own_transaction(
    empty_database_url: str, folder: Path
) -> None:
    (folder / "0003_greedy.sql").write_text("CREATE TABLE greed (); COMMIT;")
    with pytest.raises(MigrationError, match="0003_greedy ends the transaction"):
        await migrate(empty_database_url, folder)


async def test_a_database_out_of_reach_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        await migrate(f"postgresql://postgres@/postgres?host={tmp_path}")
