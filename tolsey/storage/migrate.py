"""The database's shape: numbered files of SQL, each run once, in order, and never taken back.

A release first widens the shape, and a later one narrows it, so that processes of both work on one
database. A file says in its opening comment which code can: `-- compatible-from: 0018` means all that
knows migration 0018; without that line, only code that knows the file itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tolsey.storage.database import Connection, translated
from tolsey.storage.errors import StorageError

MIGRATIONS = Path(__file__).parent / "migrations"

LOCK_KEY = 0x746F6C736579
"""The advisory lock of whoever migrates: "tolsey" in ASCII."""

COMPATIBLE_FROM = re.compile(r"^-- compatible-from: (\d{4})\b", re.MULTILINE)

TURN_TIMEOUT = "120s"
"""How long a process waits while another migrates."""

LOCK_TIMEOUT = "5s"
"""How long a migration may hold up the traffic behind it while it waits for a table."""


class MigrationError(StorageError):
    """The files and the database tell different histories; the sentence says where."""


@dataclass(frozen=True, slots=True, order=True)
class Migration:
    """One step; its place is its number."""

    number: int
    name: str
    compatible_from: int
    """The oldest code that works on this shape, by the number of the newest migration it knows."""
    sql: str


async def migrate(dsn: str, folder: Path = MIGRATIONS) -> list[str]:
    """Bring a database up to date; answer the names of what was applied, in order.

    Processes that start together take turns, so each step runs once. A step that fails changes
    nothing and ends the call; the steps before it stay. A database that is newer than the files is
    left as it is, or refused when what was applied to it says that it asks for newer code.
    """
    on_disk = migrations(folder)
    try:
        connection: Connection = await asyncpg.connect(
            dsn, timeout=10, server_settings={"application_name": "tolsey migrate"}
        )
        try:
            return await _apply(connection, on_disk)
        finally:
            await connection.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise translated(error) from error


def migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """Read the steps of a folder, in order; a number may stand once."""
    found: dict[int, Migration] = {}
    for file in sorted(folder.glob("*.sql")):
        named = re.fullmatch(r"(\d{4})_[a-z0-9_]+", file.stem)
        if named is None:
            raise MigrationError(f"{file.name} is not named like 0001_what_it_is_about.sql.")
        number = int(named[1])
        if number in found:
            raise MigrationError(f"{found[number].name} and {file.stem} have the same number.")
        sql = file.read_text(encoding="utf-8")
        said = COMPATIBLE_FROM.search(sql)
        compatible_from = int(said[1]) if said else number
        if compatible_from > number:
            raise MigrationError(
                f"{file.stem} cannot ask for {compatible_from:04}, which follows it."
            )
        found[number] = Migration(number, file.stem, compatible_from, sql)
    return sorted(found.values())


async def _apply(connection: Connection, on_disk: list[Migration]) -> list[str]:
    await connection.execute(f"SET lock_timeout = '{TURN_TIMEOUT}'")
    await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)  # freed with the connection
    await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations ("
        " number integer PRIMARY KEY, name text NOT NULL,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )
    await connection.execute(
        "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS compatible_from integer"
    )
    rows = await connection.fetch(
        "SELECT number, name, coalesce(compatible_from, number) AS compatible_from"
        " FROM schema_migrations ORDER BY number"
    )
    newest = max((step.number for step in on_disk), default=0)
    for row in rows:
        if newest < row["compatible_from"]:
            raise MigrationError(
                f"The database has migration {row['name']}, which this version cannot work with: start"
                f" one that knows migration {row['compatible_from']:04}."
            )
    waiting = _waiting(
        {row["number"]: row["name"] for row in rows if row["number"] <= newest}, on_disk
    )
    for step in waiting:
        await _apply_one(connection, step)
    return [step.name for step in waiting]


def _waiting(applied: dict[int, str], on_disk: list[Migration]) -> list[Migration]:
    """Answer the steps still to run, or refuse: history is neither rewritten nor inserted into."""
    known = {step.number: step.name for step in on_disk}
    for number, name in applied.items():
        if known.get(number) != name:
            raise MigrationError(f"The database has migration {name}; this version does not.")
    waiting = [step for step in on_disk if step.number not in applied]
    last = max(applied, default=0)
    for step in waiting:
        if step.number < last:
            raise MigrationError(f"{step.name} comes too late: {applied[last]} is applied already.")
    return waiting


async def _apply_one(connection: Connection, step: Migration) -> None:
    async with connection.transaction():
        try:
            await connection.execute(step.sql)
        except asyncpg.PostgresError as error:
            raise MigrationError(f"{step.name}: {type(error).__name__}: {error}") from error
        if not connection.is_in_transaction():
            raise MigrationError(f"{step.name} ends the transaction that it runs in.")
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, compatible_from) VALUES ($1, $2, $3)",
            step.number,
            step.name,
            step.compatible_from,
        )
