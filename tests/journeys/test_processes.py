"""`tolsey serve --shards 2` as an operator runs it: deaths, replacements and stops under load."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from tests.conftest import memory
from tests.journeys.conftest import free_port
from tests.journeys.served import CLIENTS, Fleet, load, recorded
from tests.piped import SECONDS
from tests.timing import until
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.embedded import locks


@pytest.fixture
def fleet(settings: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    assert settings.database_url is not None
    assert settings.redis_url is not None
    made = Fleet(
        tmp_path,
        free_port(),
        {
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": settings.redis_url,
            "COMMERCE_URL_TEMPLATE": settings.commerce_url_template,
        },
        getattr(request, "param", Fleet.server),
    )
    made.start()
    yield made
    made.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only there the end of any process is seen")
async def test_what_is_sent_after_a_process_was_killed_is_answered(
    fleet: Fleet, database: Database
) -> None:
    async with load(await fleet.ready()) as seen:
        victim = fleet.children()[0]
        handle = os.pidfd_open(victim)
        os.kill(victim, signal.SIGKILL)
        assert select.select([handle], [], [], SECONDS)[0]
        killed_at = time.monotonic()
        await fleet.until_said("process.ready", 3)
        await seen.more(100)
        os.close(handle)

    assert [error for begun, error in seen.failures if begun > killed_at] == []
    assert len(seen.failures) <= CLIENTS, "only what it was about to answer"
    assert set(seen.answers) <= {200, 503}, "a 503 asks to be sent again"
    assert seen.kept <= await recorded(database)
    assert [line["pid"] for line in fleet.said("process.died")] == [victim]


async def test_a_hangup_replaces_both_under_load_and_fails_no_request(
    fleet: Fleet, database: Database
) -> None:
    async with load(await fleet.ready()) as seen:
        before = fleet.children()
        fleet.process.send_signal(signal.SIGHUP)
        await fleet.until_said("process.stopped", 2)
        await seen.more(100)

    assert seen.failures == []
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)
    after = fleet.children()[2:]
    assert len(after) == 2
    assert not set(before) & set(after)


@pytest.mark.parametrize("fleet", ["hypercorn", "uvicorn"], indirect=True)
async def test_a_stop_under_load_answers_every_request_that_was_sent(
    fleet: Fleet, database: Database
) -> None:
    async with load(await fleet.ready()) as seen:
        fleet.process.send_signal(signal.SIGTERM)
        assert await fleet.wait() == 0

    assert {type(error) for _, error in seen.failures} <= {httpx.ConnectError}, "nobody listens"
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)
    assert fleet.gone()


async def test_the_end_of_a_killed_parent_is_the_end_of_all_even_of_the_servers(
    open_folder: Path,
) -> None:
    fleet = Fleet(open_folder, 0, {})
    keeper = open_folder / ".data" / "servers" / "keeper.lock"
    fleet.start()
    try:
        await fleet.ready()
        assert locks.owned(keeper)
        fleet.process.kill()
        assert await anyio.to_thread.run_sync(fleet.gone)
        await until(lambda: not locks.owned(keeper))
    finally:
        fleet.end()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a short path that any user may walk to; pytest's own is closed to the servers' user."""
    made = Path(tempfile.mkdtemp(prefix="tolsey-fleet-", dir=memory()))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("wrong", ["setting", "port"])
def test_what_is_wrong_for_all_is_said_in_one_line_before_any_process(
    wrong: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stopped = subprocess.run(
            [sys.executable, "-m", "tolsey", "serve", "--shards", "2", "--port", str(port)],
            env={**os.environ, "CRON_SECRET": "sesame" if wrong == "setting" else "c" * 32},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    said = "CRON_SECRET: " if wrong == "setting" else f"127.0.0.1:{port}: another program"
    assert line.startswith(f"Error: {said}")
    assert not list(tmp_path.iterdir())
