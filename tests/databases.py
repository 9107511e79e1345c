"""The databases of tests: each its own, and none made anew that the one before left as it was."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import anyio
import asyncpg
import pytest

from tolsey.service import starting
from tolsey.storage.database import Connection, Pool, Row
from tolsey.storage.migrate import migrate
from tolsey.storage.runtime.commit_statement import statement
from tolsey.storage.runtime.journal import Journal

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Servers:
    """Where this session's PostgreSQL and Redis answer, and whether they are all ours."""

    database_url: str
    redis_url: str
    embedded: bool

    def database_named(self, name: str) -> str:
        return urlunsplit(urlsplit(self.database_url)._replace(path=f"/{name}"))


async def copy(administrator: Connection, servers: Servers, template: str) -> str:
    name = f"tolsey_test_{os.getpid()}_{next(NUMBERS)}"
    # Hundreds of copies: as files they leave no log behind, which would fill the memory.
    strategy = "STRATEGY file_copy" if servers.embedded else ""
    await administrator.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}")
    return name


async def copied(servers: Servers, template: str) -> AsyncIterator[str]:
    administrator = await asyncpg.connect(servers.database_url)
    try:
        name = await copy(administrator, servers, template)
        yield servers.database_named(name)
        await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await administrator.close()


SHAPE = """
SELECT count(*), count(*) FILTER (WHERE age(changed) < age($1::text::xid)), (
    SELECT count(*) FROM pg_db_role_setting JOIN pg_database AS own ON own.oid = setdatabase
    WHERE own.datname = current_database()
) FROM (
    SELECT xmin AS changed FROM pg_class WHERE oid >= 16384
    UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0
    UNION ALL SELECT xmin FROM pg_constraint WHERE oid >= 16384
    UNION ALL SELECT xmin FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT xmin FROM pg_attrdef UNION ALL SELECT xmin FROM pg_trigger
    UNION ALL SELECT xmin FROM pg_namespace UNION ALL SELECT xmin FROM pg_statistic
) AS catalogue"""
"""Differs when more than rows was changed: a table, a right, a setting, what ANALYZE found.

What the server brings, whose numbers are smaller, is nobody's to change.
"""
FREE_SLOTS = """
UPDATE slot_epochs SET owner = NULL, pinned_to = NULL WHERE owner IS NOT NULL OR pinned_to IS NOT NULL;"""
"""Every service has all slots under new epochs: to write 1,024 rows anew, and to plan each commit anew after the
vacuum that they need, would take longest of all."""
VISITED = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL ($1::int[])"""
SINCE = "set_config('tests.since', pg_current_xact_id()::xid::text, false)"
"""Notes that all rows are as they are to be: what is written later has a later transaction."""
MOST_LEFT_BYTES = 4 << 20
"""When so much lies in tables that are empty, a copy costs less than to go on among what rows left behind."""
PARTING_SECONDS = 1.0
"""So long connections may take to end after their test; later their database is dropped."""


class KeptPool(asyncpg.Pool):
    """A pool whose connections outlive the test that closes it: a new one takes 3 ms of processor time."""

    __slots__ = ("in_use",)

    def __init__(self, *places: Any, **options: Any) -> None:
        super().__init__(*places, **options)
        self.in_use = True

    async def close(self) -> None:
        """Wait until every connection is given back, and make a new session of each."""
        held = self._holders  # type: ignore[attr-defined]
        await asyncio.gather(*(one.wait_until_released() for one in held))
        for one in held:
            if one.is_connected():
                try:
                    await one._con.reset(timeout=PARTING_SECONDS)
                except (
                    asyncpg.PostgresError,
                    asyncpg.InterfaceError,
                    asyncpg.InternalClientError,
                    OSError,
                ):
                    one.terminate()
        self.in_use = False

    def backends(self) -> list[int]:
        """Name the server's processes at the other ends."""
        held = self._holders  # type: ignore[attr-defined]
        return [one._con.get_server_pid() for one in held if one.is_connected()]


class KeptJournal(NamedTuple):
    """What a journal had open: to plan its statements anew takes longest of all."""

    connection: Connection
    prepared: dict[Any, Any]


class Databases:
    """The migrated database of each test, one after the other.

    A copy takes 23 ms of processor time; so where a test changed rows alone, they are taken away for
    the next over a connection that stays, and what the migrations wrote is put back.
    """

    def __init__(self, servers: Servers, template: str, administrator: Connection) -> None:
        self._servers = servers
        self._template = template
        self._administrator = administrator
        self._name = ""
        self._connection: Connection | None = None
        self._shape: Row | None = None
        self._since = ""
        """The transaction since which changes count."""
        self._migrated = ""
        """The address whose service has found that there is nothing to migrate."""
        self._pools: list[tuple[dict[str, Any], KeptPool]] = []
        self._journals: list[KeptJournal] = []

    def lend(self, given: pytest.MonkeyPatch) -> None:
        """Have the service's pools and journals use what is kept open."""

        async def opened(journal: Journal) -> Connection:
            return await self._open(journal)

        async def closed(journal: Journal) -> None:
            await self._close(journal)

        given.setattr(asyncpg, "create_pool", self._pool)
        given.setattr(starting, "migrate", self._migrate)
        given.setattr(Journal, "open", opened)
        given.setattr(Journal, "close", closed)

    async def _pool(self, dsn: str, **options: Any) -> Pool:
        """Lend a pool of the test's database that an earlier test opened; open any other."""
        if not self._is_ours(dsn):
            return await OPEN_POOL(dsn, **options)
        for opened_with, pool in self._pools:
            if not pool.in_use and opened_with == options and not pool.is_closing():
                pool.in_use = True
                return pool
        made = KeptPool(
            dsn,
            connection_class=asyncpg.Connection,
            record_class=asyncpg.Record,
            max_queries=1 << 30,
            max_inactive_connection_lifetime=0,
            loop=None,
            **options,
        )
        await made
        self._pools.append((options, made))
        return made

    async def _migrate(self, dsn: str) -> list[str]:
        """Say that there is nothing to migrate in a copy of what is migrated; look when asked again."""
        if not self._is_ours(dsn) or self._migrated == dsn:
            return await migrate(dsn)
        self._migrated = dsn
        return []

    async def _open(self, journal: Journal) -> Connection:
        """Give a journal of the test's database what an earlier one had open."""
        if journal._connection is None and self._is_ours(journal._database.dsn):
            while self._journals:
                connection, prepared = self._journals.pop()
                if not connection.is_closed():
                    journal._connection = connection
                    # A test that plants a bug in a statement must not leave it to the next.
                    journal._prepared = {
                        form: one
                        for form, one in prepared.items()
                        if one.get_query() == statement(form)
                    }
                    journal._backend = connection.get_server_pid()
                    break
        return await OPEN_JOURNAL(journal)

    async def _close(self, journal: Journal) -> None:
        connection = journal._connection
        if (
            connection is None
            or connection.is_closed()
            or journal._backend in journal._lost  # its process is about to be ended
            or not self._is_ours(journal._database.dsn)
        ):
            await CLOSE_JOURNAL(journal)
        else:
            self._journals.append(KeptJournal(connection, journal._prepared))
            journal._connection = None

    def _is_ours(self, dsn: str) -> bool:
        return self._connection is not None and dsn == self._servers.database_named(self._name)

    async def take(self) -> str:
        if self._connection is None:
            self._name = await copy(self._administrator, self._servers, self._template)
            self._connection = await asyncpg.connect(self._servers.database_named(self._name))
            await self._learn(self._connection)
        self._migrated = ""
        return self._servers.database_named(self._name)

    async def _learn(self, connection: Connection) -> None:
        """Look at what migrations made: its shape, and the rows in it."""
        steps = []
        for name, kind in await connection.fetch(
            "SELECT relname, relkind::text FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')"
        ):
            if kind == "S":
                steps.append(
                    f"IF (SELECT is_called OR last_value <> 1 FROM {name}) THEN"  # noqa: S608 - our own names
                    f" PERFORM setval('{name}', 1, false); END IF;"
                )
            elif name == "slot_epochs":
                steps.append(FREE_SLOTS)
            elif await connection.fetchrow(f"SELECT 1 FROM {name}"):  # noqa: S608
                await connection.execute(f"CREATE TEMP TABLE kept_{name} AS TABLE {name}")
                steps.append(
                    f"IF (SELECT count(*) <> (SELECT count(*) FROM kept_{name})"  # noqa: S608
                    f" OR bool_or(age(xmin) < age(current_setting('tests.since')::xid)) FROM {name})"
                    f" THEN DELETE FROM {name}; INSERT INTO {name} SELECT * FROM kept_{name};"
                    f" written := written || '{name}'::text; END IF;"
                )
            else:  # to look for rows takes longer than to ask whether any were ever written
                steps.append(
                    f"size := pg_relation_size('{name}'::regclass); IF size > 0 THEN"  # noqa: S608
                    f" DELETE FROM {name}; left_bytes := left_bytes + size; END IF;"
                )
        # As a function the steps are planned once. It answers which tables it wrote anew, and what is left in others.
        await connection.execute(
            "CREATE FUNCTION pg_temp.empty(OUT written text[], OUT left_bytes bigint) LANGUAGE plpgsql AS"
            f" $$ DECLARE size bigint; BEGIN written := '{{}}'; left_bytes := 0; {' '.join(steps)}"
            f" PERFORM {SINCE}; END $$"
        )
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(f"SELECT {SINCE}")
        self._since = await connection.fetchval("SELECT pg_current_xact_id()::xid::text")
        self._shape = await connection.fetchrow(SHAPE, self._since)

    async def give_back(self, *, may_change_schema: bool) -> None:
        """Empty the database for the next test, or drop it where a new copy is needed or cheaper.

        Raises AssertionError when a test changed more than rows and isn't marked `changes_schema`.
        """
        emptied, has_changed_schema = await self._emptied()
        if not emptied:
            await self.drop()
        assert may_change_schema or not has_changed_schema, (
            "This test changed the schema. Mark it with pytest.mark.changes_schema, or create its"
            " tables in the template of tests/conftest.py if many tests need them."
        )

    async def _emptied(self) -> tuple[bool, bool]:
        """Take the rows away, unless somebody is still connected or more than rows was changed.

        Return whether the database can be used again, and whether its schema was changed.
        """
        assert self._connection is not None
        parked = [pid for _, pool in self._pools if not pool.in_use for pid in pool.backends()]
        parked += [one.connection.get_server_pid() for one in self._journals]
        try:
            with anyio.move_on_after(PARTING_SECONDS):
                while await self._connection.fetchval(VISITED, parked):
                    await anyio.sleep(0.01)
                if await self._connection.fetchrow(SHAPE, self._since) != self._shape:
                    return False, True
                done = await self._connection.fetchrow("SELECT * FROM pg_temp.empty()")
                assert done is not None
                if done["written"]:  # what was there before is left behind
                    await self._connection.execute(f"VACUUM {', '.join(done['written'])}")
                return bool(done["left_bytes"] < MOST_LEFT_BYTES), False
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            pass  # the test ended every connection
        return False, False

    async def drop(self) -> None:
        if self._connection is not None:
            for _, pool in self._pools:
                pool.terminate()
            self._pools.clear()
            for one in self._journals:
                one.connection.terminate()
            self._journals.clear()
            self._connection.terminate()
            self._connection = None
            await self._administrator.execute(f"DROP DATABASE {self._name} WITH (FORCE)")


OPEN_POOL, OPEN_JOURNAL, CLOSE_JOURNAL = asyncpg.create_pool, Journal.open, Journal.close
