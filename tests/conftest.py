import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import anyio
import asyncpg
import hypothesis
import pytest
import redis.asyncio

from tests.described import Watched
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Connection, Database, Row
from tolsey.storage.embedded.servers import EmbeddedServers
from tolsey.storage.migrate import migrate

# Whether a busy machine is slow says nothing of what is tested; pytest-timeout bounds each test.
hypothesis.settings.register_profile(
    "tolsey", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# A broken rule is found by few cases or by none, and nobody reads how small the case can be made.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("tolsey"),
    derandomize=True,
    database=None,
    max_examples=20,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)
hypothesis.settings.load_profile("tolsey")

pytest_plugins = ("tests.once",)

HERE = Path(__file__).parent
SLOW_PLACES = tuple(
    HERE / place
    for place in (
        "campaigns",
        "mcp/real",
        "http/chat/test_crashes.py",
        "journeys/client",
        "journeys/test_newcomer.py",
        "journeys/test_processes.py",
        "test_served_processes.py",
    )
)
"""Campaigns, other people's clients, and what starts the service as its own processes."""
SLOW_FIXTURES = frozenset({"chromium_path", "fleet", "process"})
"""A browser, several processes of the service, and one that is killed."""

NUMBERS = itertools.count()
ROOM_BYTES = 4 << 30
"""More than these servers ever fill."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-slow`: no rule, and no test of security that can do without."""
    for item in items:
        needed = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if needed or any(item.path.is_relative_to(place) for place in SLOW_PLACES):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def watched_answers() -> Iterator[Watched]:
    """Look at every answer that a service of these tests gives."""
    given, watched = pytest.MonkeyPatch(), Watched()

    async def served(edge: Edge, *connection: Any) -> None:
        await watched(edge, *connection)

    given.setattr(Edge, "__call__", served)
    yield watched
    given.undo()


@pytest.fixture(autouse=True)
def _answers_as_described(watched_answers: Watched) -> Iterator[None]:
    """Hold each answer of a test against `/openapi.json`, so that every test checks that, too."""
    yield
    wrong, watched_answers.wrong = watched_answers.wrong, []
    assert wrong == []


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


SHAPE = """
SELECT count(*), max(changed::text::bigint), (
    SELECT count(*) FROM pg_db_role_setting JOIN pg_database AS own ON own.oid = setdatabase
    WHERE own.datname = current_database()
) FROM (
    SELECT xmin AS changed FROM pg_class UNION ALL SELECT xmin FROM pg_attribute
    UNION ALL SELECT xmin FROM pg_constraint UNION ALL SELECT xmin FROM pg_index
    UNION ALL SELECT xmin FROM pg_trigger UNION ALL SELECT xmin FROM pg_proc
    UNION ALL SELECT xmin FROM pg_namespace UNION ALL SELECT xmin FROM pg_statistic
) AS catalogue"""
"""Differs when more than rows was changed: a table, a right, a setting, what ANALYZE found."""
VISITED = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"""
USES = 32
"""After so many tests a copy costs less than what their rows left behind."""
PARTING_SECONDS = 1.0
"""So long connections may take to end after their test; later their database is dropped."""


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
        self._uses = 0
        self._shape: Row | None = None
        self._vacuuming = ""

    async def take(self) -> str:
        if self._connection is None:
            self._name = await copy(self._administrator, self._servers, self._template)
            self._connection = await asyncpg.connect(self._servers.database_named(self._name))
            await self._learn(self._connection)
            self._uses = 0
        self._uses += 1
        return self._servers.database_named(self._name)

    async def _learn(self, connection: Connection) -> None:
        """Look at what migrations made: its shape, and the rows in it."""
        steps, kept = [], []
        for (table,) in await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ):
            steps.append(f"DELETE FROM {table};")  # noqa: S608 - our own names
            if await connection.fetchrow(f"SELECT 1 FROM {table}"):  # noqa: S608
                await connection.execute(f"CREATE TEMP TABLE kept_{table} AS TABLE {table}")
                steps.append(f"INSERT INTO {table} SELECT * FROM kept_{table};")  # noqa: S608
                kept.append(table)
        steps.append("PERFORM setval(oid, 1, false) FROM pg_class WHERE relkind = 'S';")
        # As a function the steps are planned once. What is written anew each time leaves the former behind.
        await connection.execute(
            "CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql AS"
            f" $$ BEGIN {' '.join(steps)} END $$"
        )
        self._vacuuming = f"VACUUM {', '.join(kept)}"
        await connection.execute("SET session_replication_role = replica")
        self._shape = await connection.fetchrow(SHAPE)

    async def give_back(self) -> None:
        if self._uses == USES or not await self._emptied():
            await self.drop()

    async def _emptied(self) -> bool:
        """Take the rows away, unless somebody is still connected or more than rows was changed."""
        assert self._connection is not None
        try:
            with anyio.move_on_after(PARTING_SECONDS):
                while await self._connection.fetchval(VISITED):
                    await anyio.sleep(0.01)
                if await self._connection.fetchrow(SHAPE) == self._shape:
                    await self._connection.execute("SELECT pg_temp.empty()")
                    await self._connection.execute(self._vacuuming)
                    return True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False  # the test ended every connection
        return False

    async def drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
            await self._administrator.execute(f"DROP DATABASE {self._name} WITH (FORCE)")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Real servers: those of DATABASE_URL and REDIS_URL, else embedded ones."""
    database_url, redis_url = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
    if database_url and redis_url:
        yield Servers(database_url, redis_url, embedded=False)
        return
    folder = Path(tempfile.mkdtemp(prefix="tolsey-tests-", dir=memory()))
    folder.chmod(0o755)  # pytest's own folders are closed to the user that the servers run as
    try:
        with EmbeddedServers(folder / "servers") as embedded:
            yield Servers(embedded.database_url, embedded.redis_url, embedded=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
async def template(servers: Servers) -> AsyncIterator[str]:
    """Name a migrated, empty database that each test's own is copied from."""
    name = f"tolsey_template_{os.getpid()}"
    administrator = await asyncpg.connect(servers.database_url)
    try:
        await administrator.execute(f"DROP DATABASE IF EXISTS {name}")
        await administrator.execute(f"CREATE DATABASE {name}")
        await migrate(servers.database_named(name))
        yield name
        await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await administrator.close()


@pytest.fixture
async def empty_database_url(servers: Servers) -> AsyncIterator[str]:
    """Point at a database of one's own with nothing in it, not even a migration."""
    async for url in copied(servers, "template1"):
        yield url


@pytest.fixture(scope="session")
async def databases(servers: Servers, template: str) -> AsyncIterator[Databases]:
    administrator = await asyncpg.connect(servers.database_url)
    kept = Databases(servers, template, administrator)
    yield kept
    await kept.drop()
    await administrator.close()


@pytest.fixture
async def database_url(databases: Databases) -> AsyncIterator[str]:
    """Point at a migrated database of one's own."""
    yield await databases.take()
    await databases.give_back()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Open a migrated database of one's own."""
    opened = Database(database_url)
    await opened.open()
    yield opened
    await opened.close()


async def emptied(servers: Servers) -> str:
    """Point at Redis; the embedded one is emptied first, a given one is not ours to empty."""
    if servers.embedded:
        client = redis.asyncio.from_url(servers.redis_url)
        await client.flushall()
        await client.aclose()
    return servers.redis_url


@pytest.fixture
async def redis_url(servers: Servers) -> str:
    return await emptied(servers)


def memory() -> Path | None:
    """Find a folder in memory, where a copied database costs a tenth; None when there is none."""
    shared = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of its own there
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < ROOM_BYTES:
        return None
    return shared


async def copied(servers: Servers, template: str) -> AsyncIterator[str]:
    administrator = await asyncpg.connect(servers.database_url)
    try:
        name = await copy(administrator, servers, template)
        yield servers.database_named(name)
        await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await administrator.close()
