import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import hypothesis
import pytest
import redis

from tests.ci.marks import mark_for_ci
from tests.databases import Databases, Servers, copied
from tests.described import Watched
from tests.runtime.counter import SCHEMA as COUNTERS
from tolsey.http.web.edge import Edge
from tolsey.sandbox.model import Model
from tolsey.storage import cache
from tolsey.storage import database as postgresql
from tolsey.storage.database import Database
from tolsey.storage.embedded.servers import EmbeddedServers
from tolsey.storage.migrate import migrate

# Whether a busy machine is slow says nothing of what is tested; pytest-timeout bounds each test.
# A landing is never red by the luck of a draw: the gate runs the same cases each time, and
# HYPOTHESIS_PROFILE=nightly draws new ones.
hypothesis.settings.register_profile(
    "nightly",
    deadline=None,
    derandomize=False,  # where CI is set, Hypothesis's own default is True
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "gate", hypothesis.settings.get_profile("nightly"), derandomize=True, database=None
)
# A broken rule is found by few cases or by none, and nobody reads how small the case can be made.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("gate"),
    max_examples=20,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

# A machine that stands still for a second is no Redis that is unreachable: limits would begin again,
# and leases would not be renewed.
cache.TIMEOUT_SECONDS = 30.0
# Nor is it a PostgreSQL that is unreachable.
postgresql.REQUEST_SECONDS = 30.0

pytest_plugins = ("tests.forks", "tests.once", "tests.ci.retry")

HERE = Path(__file__).parent
SLOW_PLACES = tuple(
    HERE / place
    for place in (
        "campaigns",
        "demo/test_webhook_trace.py",
        "mcp/real",
        "http/chat/test_crashes.py",
        "journeys/canary/test_planted_leaks.py",
        "journeys/client",
        "journeys/test_credentials.py",
        "journeys/test_failover.py",
        "journeys/test_key_rotation.py",
        "journeys/test_newcomer.py",
        "journeys/test_point_in_time.py",
        "journeys/test_processes.py",
        "journeys/test_rolling.py",
        "journeys/test_walk.py",
        "journeys/test_restore.py",
        "test_served_processes.py",
    )
)
"""Campaigns, other people's clients, and what starts the service as its own processes."""
SLOW_FIXTURES = frozenset({"chromium_path", "fleet", "process"})
"""A browser, several processes of the service, and one that is killed."""

ROOM_BYTES = 4 << 30
"""More than these servers ever fill."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-slow`: no rule, and no test of security that can do without."""
    for item in items:
        needed = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if needed or any(item.path.is_relative_to(place) for place in SLOW_PLACES):
            item.add_marker("slow")
        mark_for_ci(item)


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
    """Name a migrated, empty database that each test's own is copied from.

    It has the tables of the runtime's test actors too: tables that a test creates cost it a new copy.
    """
    name = f"tolsey_template_{os.getpid()}"
    administrator = await asyncpg.connect(servers.database_url)
    try:
        if (
            servers.embedded
        ):  # nothing that runs by itself takes time of the tests, or changes a plan between two
            await administrator.execute("ALTER SYSTEM SET autovacuum = off")
            await administrator.execute("SELECT pg_reload_conf()")
        await administrator.execute(f"DROP DATABASE IF EXISTS {name}")
        await administrator.execute(f"CREATE DATABASE {name}")
        await migrate(servers.database_named(name))
        connection = await asyncpg.connect(servers.database_named(name))
        await connection.execute(COUNTERS)
        await connection.close()
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
async def databases(
    servers: Servers, template: str, given_once: pytest.MonkeyPatch
) -> AsyncIterator[Databases]:
    administrator = await asyncpg.connect(servers.database_url)
    kept = Databases(servers, template, administrator)
    kept.lend(given_once)
    yield kept
    await kept.drop()
    await administrator.close()


@pytest.fixture
async def database_url(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Point at a migrated database of one's own."""
    yield await databases.take()
    may_change_schema = request.node.get_closest_marker("changes_schema") is not None
    await databases.give_back(may_change_schema=may_change_schema)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Open a migrated database of one's own."""
    opened = Database(database_url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def redis_client(servers: Servers) -> Iterator[redis.Redis]:
    """Keep a connection to Redis open: a new one for each test takes longer than what it is for."""
    with redis.Redis.from_url(servers.redis_url) as client:
        yield client


def emptied(servers: Servers, redis_client: redis.Redis) -> str:
    """Point at Redis; the embedded one is emptied first, a given one is not ours to empty."""
    if servers.embedded:
        redis_client.flushall()
    return servers.redis_url


@pytest.fixture
def redis_url(servers: Servers, redis_client: redis.Redis) -> str:
    return emptied(servers, redis_client)


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    """Serve a language model that says what a test wants."""
    made = Model()
    async with made.serve():
        yield made


def memory() -> Path | None:
    """Find a folder in memory, where a copied database costs a tenth; None when there is none."""
    shared = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of its own there
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < ROOM_BYTES:
        return None
    return shared
