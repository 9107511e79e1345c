"""The database's shape: numbered files of SQL, each run once, in order, and never taken back.

A release first widens the shape, and a later one narrows it, so that processes of both work on one
database. A file says in its opening comment which code can: `-- compatible-from: 0018` means all that
knows migration 0018; without that line, only code that knows the file itself. And it says what it
locks, and for how long on a million rows: `-- locks: outbox, for a moment`.

A file runs in one transaction, which is for catalogues and new tables. One that says
`-- transaction: none` runs statement by statement and goes on where it stopped: each statement in a
transaction of its own, `CREATE INDEX CONCURRENTLY IF NOT EXISTS` and its like in none. A query that
says `-- in batches` is run with the key that it answered last ($1, at first '') until it answers NULL.

An empty database gets the baseline instead, one file with the schema that the first files make, and
then the files that follow it. `python -m tolsey.storage.baseline` writes it.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg

from tolsey.storage.database import LOCKED, Connection, translated
from tolsey.storage.errors import StorageError

T = TypeVar("T")

MIGRATIONS = Path(__file__).parent / "migrations"

LOCK_KEY = 0x746F6C736579
"""The advisory lock of whoever migrates: "tolsey" in ASCII."""

COMPATIBLE_FROM = re.compile(r"^-- compatible-from: (\d{4})\b", re.MULTILINE)

LOCKS = re.compile(r"^-- locks: \S", re.MULTILINE)
NO_TRANSACTION = re.compile(r"^-- transaction: none$", re.MULTILINE)
IN_BATCHES = re.compile(r"^-- in batches$", re.MULTILINE)
CONCURRENTLY = re.compile(r"^(?:CREATE (?:UNIQUE )?|DROP |RE)INDEX CONCURRENTLY\b", re.MULTILINE)
BUILT = re.compile(r"^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS (\w+))?", re.MULTILINE)
STATEMENT = re.compile(
    r"""(?: --[^\n]* | /\*.*?\*/ | '(?:[^']|'')*' | "[^"]*" | \$(\w*)\$.*?\$\1\$ | [^;] )+""",
    re.VERBOSE | re.DOTALL,
)
"""What stands between semicolons that are not in a comment, a text or a body."""

BASELINE = "baseline/schema.sql"
"""Where a folder of migrations has the schema that its first files make together."""
BASELINE_OF = re.compile(
    r"^-- baseline: migration (\d+), PostgreSQL (\d+), sha256 (\w+)$", re.MULTILINE
)
IS_EMPTY = """
SELECT current_schema() = 'public' AND NOT EXISTS (
    SELECT 1 FROM pg_class WHERE oid >= 16384 AND relnamespace::regnamespace::text !~ '^pg_(toast|temp)'
    UNION ALL SELECT 1 FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT 1 FROM pg_type WHERE oid >= 16384
    UNION ALL SELECT 1 FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_(toast|temp)'
)"""
"""Whether a database holds nothing but what PostgreSQL puts into a new one: no table, function, type or schema."""

TURN_SECONDS = 600.0
"""How long a process waits while another migrates."""
TURN_PAUSE_SECONDS = 0.1

RECORD = "INSERT INTO schema_migrations (number, name, compatible_from) VALUES ($1, $2, $3)"

LOCK_TIMEOUT = "200ms"
"""How long a migration may hold up the traffic behind it while it waits for a table."""
LOCK_TRIES = 60
LOCK_PAUSE_SECONDS = 2.0
"""So long traffic goes on before the table is asked for again."""
BUILD_TIMEOUT = "1h"
"""How long a concurrent statement waits for old transactions: nothing waits behind it."""


class MigrationError(StorageError):
    """The files and the database tell different histories; the sentence says where."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Migration:
    """One step; its place is its number."""

    number: int
    name: str
    compatible_from: int
    """The oldest code that works on this shape, by the number of the newest migration it knows."""
    sql: str

    @property
    def statements(self) -> list[str]:
        """What it runs on their own, one after the other: nothing when it is one transaction."""
        if not NO_TRANSACTION.search(self.sql):
            return []
        found = [one[0].strip() for one in STATEMENT.finditer(self.sql)]
        return [one for one in found if re.sub(r"--[^\n]*|\s", "", one)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The schema that the first migrations make, as one script for the release of PostgreSQL that wrote it."""

    last: int
    server: int
    sql: str


async def migrate(dsn: str, folder: Path = MIGRATIONS, *, with_baseline: bool = True) -> list[str]:
    """Bring a database up to date; answer the names of what was applied, in order.

    Processes that start together take turns, so each step runs once. A step that fails ends the call;
    the steps before it stay, and of its own statements those that it ran outside a transaction. A database that is newer than the files is
    left as it is, or refused when what was applied to it says that it asks for newer code.
    """
    on_disk = migrations(folder)
    baseline = read_baseline(folder, on_disk) if with_baseline else None
    try:
        connection: Connection = await asyncpg.connect(
            dsn, timeout=10, server_settings={"application_name": "tolsey migrate"}
        )
        try:
            return await _apply(connection, on_disk, baseline)
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
        found[number] = Migration(
            number=number, name=file.stem, compatible_from=compatible_from, sql=sql
        )
    return sorted(found.values())


def digest_of(steps: list[Migration]) -> str:
    """Return the digest by which a baseline is known to be made of just these files."""
    whole = "\0".join(f"{one.name}\0{one.compatible_from}\0{one.sql}" for one in steps)
    return hashlib.sha256(whole.encode()).hexdigest()


def read_baseline(folder: Path, on_disk: list[Migration]) -> Baseline | None:
    """Read the baseline of a folder; return None without one, or when its files are others now."""
    try:
        sql = (folder / BASELINE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    made = BASELINE_OF.search(sql)
    if made is None:
        return None
    last = int(made[1])
    if digest_of([one for one in on_disk if one.number <= last]) != made[3]:
        return None
    return Baseline(last=last, server=int(made[2]), sql=sql)


async def _load(
    connection: Connection, on_disk: list[Migration], baseline: Baseline | None
) -> list[str]:
    """Load the baseline into an empty database; return the names of the migrations in it."""
    server = connection.get_server_version().major
    if baseline is None or server != baseline.server or not await connection.fetchval(IS_EMPTY):
        return []
    loaded = [one for one in on_disk if one.number <= baseline.last]
    try:
        async with connection.transaction():
            await connection.execute(baseline.sql)
            await connection.executemany(
                RECORD, [(one.number, one.name, one.compatible_from) for one in loaded]
            )
    except asyncpg.PostgresError as error:
        raise MigrationError(f"baseline/schema: {type(error).__name__}: {error}") from error
    return [one.name for one in loaded]


async def _apply(
    connection: Connection, on_disk: list[Migration], baseline: Baseline | None
) -> list[str]:
    await _take_turn(connection)
    await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    await connection.execute("SET statement_timeout = 0")  # a role's own is meant for requests
    loaded = await _load(connection, on_disk, baseline)
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations ("
        " number integer PRIMARY KEY, name text NOT NULL,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migration_progress ("
        " number integer PRIMARY KEY, statements integer NOT NULL, last_key text NOT NULL)"
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
        try:
            await _apply_one(connection, step)
        except asyncpg.PostgresError as error:
            raise MigrationError(f"{step.name}: {type(error).__name__}: {error}") from error
    return loaded + [step.name for step in waiting]


async def _take_turn(connection: Connection) -> None:
    """Hold the lock of whoever migrates; it is freed with the connection.

    It is asked for again and again: a statement that waits for it would be one that whoever builds an
    index concurrently waits for.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + TURN_SECONDS
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK_KEY):
        if loop.time() > until:
            raise MigrationError(
                f"Another process has been migrating for {TURN_SECONDS / 60:.0f} minutes: wait until it"
                " is done, then start this one again."
            )
        await asyncio.sleep(TURN_PAUSE_SECONDS)


def _waiting(applied: dict[int, str], on_disk: list[Migration]) -> list[Migration]:
    """Answer the steps still to run, or refuse: history is neither rewritten nor inserted into."""
    known = {step.number: step.name for step in on_disk}
    for number, name in applied.items():
        if known.get(number) != name:
            raise MigrationError(
                f"The database has migration {name}, which this release doesn't have. Deploy a newer release."
            )
    waiting = [step for step in on_disk if step.number not in applied]
    last = max(applied, default=0)
    for step in waiting:
        if step.number < last:
            raise MigrationError(f"{step.name} comes too late: {applied[last]} is applied already.")
    return waiting


async def _apply_one(connection: Connection, step: Migration) -> None:
    statements = step.statements
    row = await connection.fetchrow(
        "SELECT statements, last_key FROM schema_migration_progress WHERE number = $1", step.number
    )
    done, last_key = (row["statements"], row["last_key"]) if row else (0, "")
    for place in range(done, len(statements)):
        await _run_alone(connection, step, place, last_key)
        last_key = ""

    async def whole() -> None:
        async with connection.transaction():
            if not statements:
                await connection.execute(step.sql)
            _still_in_transaction(connection, step)
            await connection.execute(
                "DELETE FROM schema_migration_progress WHERE number = $1", step.number
            )
            await connection.execute(
                RECORD,
                step.number,
                step.name,
                step.compatible_from,
            )

    await _until_locked(whole)


async def _run_alone(connection: Connection, step: Migration, place: int, last_key: str) -> None:
    """Run one statement outside the transaction of its file, and note how far the file came."""
    sql = step.statements[place]

    async def concurrently() -> None:
        await _drop_what_a_crash_left(connection, step, sql)
        await connection.execute(sql)

    async def batch(after: str) -> str | None:
        async with connection.transaction():
            last: str | None = None
            if IN_BATCHES.search(sql):
                last = await connection.fetchval(sql, after)
            elif not CONCURRENTLY.search(sql):
                await connection.execute(sql)
            _still_in_transaction(connection, step)
            await connection.execute(
                "INSERT INTO schema_migration_progress VALUES ($1, $2, $3) ON CONFLICT (number)"
                " DO UPDATE SET statements = excluded.statements, last_key = excluded.last_key",
                step.number,
                place + (last is None),
                last or "",
            )
        return last

    if CONCURRENTLY.search(sql):
        await connection.execute(f"SET lock_timeout = '{BUILD_TIMEOUT}'")
        await _until_locked(concurrently)
        await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    after: str | None = last_key
    while after is not None:
        after = await _until_locked(partial(batch, after))


async def _drop_what_a_crash_left(connection: Connection, step: Migration, sql: str) -> None:
    """Make way for a build whose last try was cut off: its index is written and never read."""
    built = BUILT.search(sql)
    if built is None:
        return
    if built[1] is None:
        raise MigrationError(
            f"{step.name} has to say CREATE INDEX CONCURRENTLY IF NOT EXISTS name."
        )
    if await connection.fetchval(
        "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", built[1]
    ):
        await connection.execute(f"DROP INDEX CONCURRENTLY {built[1]}")


async def _until_locked(run: Callable[[], Awaitable[T]]) -> T:
    """Try again what another transaction keeps from its locks; in between all that waits gets on."""
    for _ in range(LOCK_TRIES - 1):
        try:
            return await run()
        except LOCKED:
            await asyncio.sleep(LOCK_PAUSE_SECONDS)
    return await run()


def _still_in_transaction(connection: Connection, step: Migration) -> None:
    if not connection.is_in_transaction():
        raise MigrationError(f"{step.name} ends the transaction that it runs in.")
