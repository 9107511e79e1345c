"""Processes are replaced one after the other under load, by the same release and by others: no request fails.

Behind one port of `--shards`, and each at a port of its own behind a proxy that is told what docs/operate/edge.md says.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx
import pytest

from tests.campaigns.cluster.processes import CHECKOUT
from tests.campaigns.releases.campaign import BEFORE, code_before
from tests.http.people import KEYRING
from tests.journeys.conftest import free_port
from tests.journeys.served import Fleet, load, recorded
from tests.piped import SECONDS
from tolsey.settings import Settings
from tolsey.storage.database import Database

EDGE = CHECKOUT / "docs" / "operate" / "edge.md"
BETWEEN = 60
"""So many answers are waited for between two replacements."""
ONLY_NOW = "/status.json"
"""A route that the release before does not have."""


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """Answer the code of the release before."""
    found = code_before(tmp_path / "before")
    if found is None:
        pytest.skip(f"the clone does not have {BEFORE}: git fetch --unshallow")
    return found


def settings_for(settings: Settings) -> dict[str, str]:
    """Name the servers of a test to a process."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    return {
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "COMMERCE_URL_TEMPLATE": settings.commerce_url_template,
    }


# Behind one port


def point(link: Path, code: Path) -> None:
    """Check another release out, as far as whoever starts from a folder sees."""
    beside = link.with_name("next")
    beside.symlink_to(code)
    beside.replace(link)


@pytest.mark.timeout(900)
async def test_a_release_and_the_way_back_fail_no_request(
    settings: Settings, before: Path, tmp_path: Path, database: Database
) -> None:
    code = tmp_path / "code"
    point(code, before)
    fleet = Fleet(tmp_path, free_port(), {**settings_for(settings), "PYTHONPATH": str(code)})
    fleet.start()
    is_newer = []
    try:
        address = await fleet.ready()
        async with load(address, works=True) as seen:
            for turn, release in enumerate((CHECKOUT, before), 1):
                point(code, release)
                fleet.process.send_signal(signal.SIGHUP)
                await fleet.until_said("process.stopped", 2 * turn)
                await seen.more(BETWEEN)
                async with httpx.AsyncClient(base_url=address, timeout=SECONDS) as visitor:
                    is_newer.append((await visitor.get(ONLY_NOW)).status_code == 200)
        fleet.process.send_signal(signal.SIGTERM)
        assert await fleet.wait() == 0
    finally:
        fleet.end()

    assert is_newer == [True, False], "each release was there"
    assert len(fleet.children()) == 6
    assert seen.failures == []
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)


# Behind a proxy


@dataclass
class Served:
    """One process of the service at a port that the proxy knows."""

    folder: Path
    port: int
    settings: dict[str, str]
    process: subprocess.Popen[bytes] = field(init=False)

    async def start(self) -> None:
        """Serve, and wait until it is ready."""
        with (self.folder / f"log-{self.port}").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tolsey", "serve", "--port", str(self.port)],
                env={**os.environ, **self.settings},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + SECONDS
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}") as asking:
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if (await asking.get("/api/health")).status_code == 200:
                        return
                await anyio.sleep(0.05)
                assert time.monotonic() < end, self.log()
                assert self.process.poll() is None, self.log()

    async def stop(self) -> None:
        """Let it drain, as a deployment does."""
        self.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(self.process.wait, SECONDS) == 0, self.log()

    def log(self) -> str:
        return (self.folder / f"log-{self.port}").read_text()[-4000:]

    def end(self) -> None:
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def said(language: str) -> str:
    """Take what a proxy is told out of the page."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", EDGE.read_text(), re.DOTALL)
    return str(found)


def command_of(name: str, folder: Path, port: int, one: int, two: int) -> list[str]:
    """Write down what the page says, for these ports and without TLS; answer what to run."""
    told = said(name).replace("10.0.0.1:8000", f"127.0.0.1:{one}")
    told = told.replace("10.0.0.2:8000", f"127.0.0.1:{two}")
    written = folder / f"{name}.conf"
    if name == "haproxy":
        written.write_text(
            told.replace("bind :443 ssl crt /etc/haproxy/tls.pem", f"bind 127.0.0.1:{port}")
        )
        return ["haproxy", "-db", "-f", str(written)]
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    told = told.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    head = (
        f"daemon off; master_process off; pid {folder}/pid;\nerror_log stderr error;\nevents {{}}\n"
    )
    written.write_text(f"{head}http {{\naccess_log off;\n{temporary}\n{told}}}\n")
    return ["nginx", "-c", str(written), "-e", "stderr"]


@asynccontextmanager
async def proxy(name: str, folder: Path, port: int, one: int, two: int) -> AsyncIterator[None]:
    """Run nginx or haproxy as the page says."""
    log = folder / f"{name}.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command_of(name, folder, port, one, two),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
        )
    try:
        with anyio.fail_after(SECONDS):
            while True:
                assert process.poll() is None, log.read_text()
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await anyio.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


async def taken_again(folder: Path) -> None:
    """Wait until haproxy has told of each server that was down that it is up again.

    It looks once a second: the process that it has left may not be replaced before. nginx does not look.
    """
    log = folder / "haproxy.log"
    with anyio.fail_after(SECONDS):
        while log.exists() and (said := log.read_text()).count(" is DOWN") > said.count(" is UP"):
            await anyio.sleep(0.02)


@pytest.fixture
def processes(settings: Settings, tmp_path: Path) -> Iterator[tuple[str, list[Served]]]:
    """Two processes of one service that know the address of their proxy."""
    url = f"http://127.0.0.1:{free_port()}"
    given = {
        **settings_for(settings),
        "ENCRYPTION_KEYS": KEYRING,
        "BASE_URL": url,
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    made = [Served(tmp_path, free_port(), given) for _ in range(2)]
    yield url, made
    for one in made:
        one.end()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["nginx", "haproxy"])
async def test_a_rolling_restart_of_two_processes_behind_a_proxy_fails_no_request(
    name: str, processes: tuple[str, list[Served]], tmp_path: Path, database: Database
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    url, (one, two) = processes
    for process in (one, two):
        await process.start()
    port = int(url.rpartition(":")[2])
    async with proxy(name, tmp_path, port, one.port, two.port), load(url, works=True) as seen:
        for process in (one, two):
            await process.stop()
            await process.start()
            await taken_again(tmp_path)
            await seen.more(BETWEEN)

    assert seen.failures == []
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)
