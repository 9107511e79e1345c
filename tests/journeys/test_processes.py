"""`tolsey serve --shards 2` as an operator runs it: deaths, replacements and stops under load."""

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.conftest import memory
from tests.http.people import KEYRING
from tests.journeys.conftest import EVENTS, free_port, order_body, sign_up, signed
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.embedded import locks

SECONDS = 90.0
CLIENTS = 8


@dataclass
class Fleet:
    """Two processes of the service behind one port, and their parent."""

    folder: Path
    port: int
    settings: dict[str, str]
    server: str = "hypercorn"
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        unset = {"DATABASE_URL", "REDIS_URL"} - set(self.settings)
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tolsey",
                    "serve",
                    "--port",
                    str(self.port),
                    "--shards",
                    "2",
                    "--server",
                    self.server,
                ],
                env={
                    **kept,
                    "ENCRYPTION_KEYS": KEYRING,
                    "PYTHONUNBUFFERED": "1",
                    "BASE_URL": f"http://127.0.0.1:{self.port or 8000}",
                    **self.settings,
                },
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def said(self, event: str) -> list[dict[str, Any]]:
        """List the log lines of an event."""
        lines = [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    async def until_said(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        end = time.monotonic() + SECONDS
        while len(said := self.said(event)) < times:
            assert time.monotonic() < end, (self.folder / "log").read_text()
            assert self.process.poll() is None, (self.folder / "log").read_text()
            await anyio.sleep(0.02)
        return said

    async def ready(self) -> str:
        """Answer the address once both serve."""
        (line,) = await self.until_said("service.ready")
        return str(line["address"])

    def serving(self) -> list[int]:
        """List the processes that ever served, in their order."""
        return [line["pid"] for line in self.said("process.ready")]

    async def wait(self) -> int:
        return await anyio.to_thread.run_sync(self.process.wait, SECONDS)

    def gone(self, seconds: float = SECONDS) -> bool:
        """Wait until every process has closed our pipe; False when one stays."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def end(self) -> None:
        with self.process:
            self.process.kill()
            if not self.gone(0):
                for pid in self.serving():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


@dataclass
class Load:
    """What a platform saw that delivers one order after the other."""

    address: str
    answers: Counter[int] = field(default_factory=Counter)
    kept: set[str] = field(default_factory=set)
    """The deliveries that were answered with 200."""
    failures: list[tuple[float, httpx.HTTPError]] = field(default_factory=list)
    """When the delivery was begun that was not answered, and why."""
    over: bool = False

    async def deliver(self, numbers: Iterator[int], keeps: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=1 if keeps else 0)
        async with httpx.AsyncClient(base_url=self.address, timeout=SECONDS, limits=limits) as http:
            while not self.over:
                number = next(numbers)
                body, delivery = order_body(number), f"delivery-{number}"
                headers = signed(body, delivery_id=delivery)
                begun = time.monotonic()
                try:
                    answer = await http.post(EVENTS, content=body, headers=headers)
                except httpx.HTTPError as error:
                    self.failures.append((begun, error))
                    await anyio.sleep(0.01)
                else:
                    self.answers[answer.status_code] += 1
                    if answer.status_code == 200:
                        self.kept.add(delivery)

    async def more(self, answers: int) -> None:
        """Wait for so many more answers."""
        wanted = self.answers.total() + answers
        with anyio.fail_after(SECONDS):
            while self.answers.total() < wanted:
                await anyio.sleep(0.01)


@asynccontextmanager
async def load(fleet: Fleet) -> AsyncIterator[Load]:
    """Deliver orders, half of the clients over connections they keep, half over new ones."""
    address = await fleet.ready()
    async with httpx.AsyncClient(base_url=address, headers={"Origin": address}) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
    made, numbers = Load(address), itertools.count(1)
    async with anyio.create_task_group() as tasks:
        for client in range(CLIENTS):
            tasks.start_soon(made.deliver, numbers, client % 2 == 0)
        await made.more(50)
        yield made
        made.over = True


async def recorded(database: Database) -> set[str]:
    """List what the test delivered; the platform itself tells of the end of an import."""
    rows = await database.fetch(
        "SELECT delivery_id FROM commerce_webhook_events WHERE delivery_id LIKE 'delivery-%'"
    )
    return {row["delivery_id"] for row in rows}


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
    async with load(fleet) as seen:
        victim = fleet.serving()[0]
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
    async with load(fleet) as seen:
        before = fleet.serving()
        fleet.process.send_signal(signal.SIGHUP)
        await fleet.until_said("process.stopped", 2)
        await seen.more(100)

    assert seen.failures == []
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)
    after = fleet.serving()[2:]
    assert len(after) == 2
    assert not set(before) & set(after)


@pytest.mark.parametrize("fleet", ["hypercorn", "uvicorn"], indirect=True)
async def test_a_stop_under_load_answers_every_request_that_was_sent(
    fleet: Fleet, database: Database
) -> None:
    async with load(fleet) as seen:
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
        with anyio.fail_after(SECONDS):
            while locks.owned(keeper):
                await anyio.sleep(0.02)
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
