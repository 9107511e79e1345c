"""The drill of the runbook: a base backup and the log are put back as they were at a moment, and answer the same reads.

Every command is the one that stands in docs/operate/runbook.md, taken from there.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import redis.asyncio

from tests import commands
from tests.conftest import memory
from tests.databases import Servers
from tests.http.people import KEYRING
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.neighbours import LEASE_SECONDS, until
from tests.journeys.strangers import browsing, listing_of, quiet
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import running
from tolsey.settings import Settings
from tolsey.storage.embedded import binaries, processes
from tolsey.storage.embedded.home import ServerHome
from tolsey.storage.embedded.processes import PostgresServer

RUNBOOK = Path(__file__).parents[2] / "docs" / "operate" / "runbook.md"
PORT = 5432
LONGEST_SECONDS = 120


def block(title: str) -> str:
    """Take the commands under a title out of the runbook."""
    text = RUNBOOK.read_text()
    (found,) = re.findall(
        rf"^\*\*{re.escape(title)}\*\*.*?\n```sh\n(.*?)```", text, re.DOTALL | re.MULTILINE
    )
    return str(found)


def setting(name: str) -> str:
    """Take a setting of PostgreSQL out of the runbook."""
    (found,) = re.findall(rf"^{name} = (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    return str(found).strip("'").replace("''", "'")


@dataclass
class Drill:
    """A PostgreSQL that archives its log, a folder for backups, and one to restore to."""

    home: ServerHome
    server: PostgresServer
    programs: Path
    backup: Path
    restored: Path

    @property
    def url(self) -> str:
        return self.home.database_url

    def restored_url(self, at: Path) -> str:
        return f"postgresql://postgres@/postgres?host={at}&port={PORT}"

    def run(self, title: str, **given: str | Path) -> str:
        """Run what the runbook says under a title, as the user of the servers."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "BACKUP": str(self.backup),
            "RESTORED": str(self.restored),
            "DATABASE_URL": self.url,
            **{name: str(value) for name, value in given.items()},
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block(title)],  # noqa: S607 - as operators have it
            env=environment,
            cwd=self.backup,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
            **self.home.identity(),
        )
        assert done.returncode == 0, f"{title}: {done.stdout}{done.stderr}{self.log()}"
        return str(done.stdout)

    def log(self) -> str:
        """Read what the restored server said."""
        written = self.restored / "log"
        return written.read_text() if written.exists() else ""

    def starts(self, program: str) -> bool:
        """Whether a program of PostgreSQL starts: that of a wheel may crash at once."""
        asked = subprocess.run(
            [self.programs / program, "--version"], check=False, capture_output=True
        )
        return asked.returncode == 0

    def end(self) -> None:
        """Stop the restored server."""
        subprocess.run(
            [self.programs / "pg_ctl", "stop", "--mode", "fast", "--pgdata", self.restored],
            check=True,
            capture_output=True,
            **self.home.identity(),
        )


@pytest.fixture
def drill(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drill]:
    if not servers.embedded:
        pytest.skip("the programs of PostgreSQL are those of the embedded servers")
    folder = Path(tempfile.mkdtemp(prefix="tolsey-drill-", dir=memory()))
    folder.chmod(0o755)
    home = ServerHome.of(folder / "servers")
    home.build()
    made = {name: folder / name for name in ("backup", "restored")}
    for one in made.values():
        one.mkdir(mode=0o700)
        os.chown(one, home.uid, -1)
    (made["backup"] / "wal").mkdir()
    os.chown(made["backup"] / "wal", home.uid, -1)
    archived = {
        name: setting(name).replace("$BACKUP", str(made["backup"]))
        for name in ("wal_level", "archive_mode", "archive_command", "archive_timeout")
    }
    kept = processes.POSTGRES_SETTINGS
    monkeypatch.setattr(
        processes, "POSTGRES_SETTINGS", {**kept, **archived, "max_wal_senders": "4"}
    )
    server = PostgresServer(home)
    server.start()
    server.wait()
    # An embedded server is told on its command line; whoever has one of their own has it in the file that is backed up.
    with (server.cluster / "postgresql.conf").open("a") as file:
        file.write(f"max_connections = {kept['max_connections']}\n")
    found = binaries.postgres(None).programs
    drill = Drill(home, server, binaries.within_reach(found / "postgres", home).parent, **made)
    try:
        yield drill
    finally:
        server.ask_to_stop()
        server.wait_stopped()
        shutil.rmtree(folder, ignore_errors=True)


async def kept(url: str) -> list[str]:
    """Read what is on disk of a merchant's listings and orders."""
    connection = await asyncpg.connect(url)
    try:
        listings = await connection.fetch("SELECT * FROM listings ORDER BY id")
        sold = await connection.fetch("SELECT * FROM commerce_orders ORDER BY order_id")
    finally:
        await connection.close()
    assert listings
    assert sold
    return [str(dict(row)) for row in (*listings, *sold)]


async def read(seller: Seller) -> Mapping[str, Any]:
    """Ask what a merchant asks."""
    of_company = {"organizationId": seller.organization_id}
    asked: Mapping[str, Mapping[str, str]] = {
        "/api/stores": of_company,
        f"/api/stores/{seller.store_id}": {},
        f"/api/stores/{seller.store_id}/integrations/commerce": {},
        "/api/credits": of_company,
        "/api/sell/listings": of_company,
        "/api/auth/session": {},
    }
    answers = {}
    for path, query in asked.items():
        answer = await seller.browser.get(path, params=query)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        answers[path] = answer.json()
    return answers


async def _emptied(settings: Settings) -> None:
    """Begin with an empty Redis, as the runbook says."""
    assert settings.redis_url is not None
    client = redis.asyncio.from_url(settings.redis_url)
    await client.flushall()
    await client.aclose()


async def test_a_backup_and_the_log_bring_back_the_moment_before_the_mistake(
    drill: Drill, settings: Settings, platform: Platform, tmp_path: Path
) -> None:
    del platform
    settings = settings.model_copy(update={"database_url": drill.url})
    async with running(settings, timers=False, poll_seconds=0.1) as live, browsing(live) as browser:
        seller = await sign_up(browser)
        cookies = browser.cookies
        assert (await seller.connect()).status_code == 200
        await quiet(live)
        drill.run("Base backup.")
        if drill.starts("pg_verifybackup"):
            drill.run("Verified.")
        # What came after the backup is in the log alone.
        await listing_of(seller, title="After the backup")
        await quiet(live)
        before, answered = await kept(drill.url), await read(seller)
        moment = drill.run("The moment.").strip()
        await asyncio.sleep(0.05)
        await live.service.database.execute("UPDATE listings SET title = 'A mistake'")
        await live.service.database.execute("UPDATE commerce_orders SET currency = 'XXX'")
        await live.service.database.execute("SELECT pg_switch_wal()")
    drill.server.ask_to_stop()
    drill.server.wait_stopped()

    drill.run("Point in time.", AT=moment)
    try:
        restored = drill.restored_url(drill.restored)
        again = settings.model_copy(
            update={"database_url": restored, "lease_seconds": LEASE_SECONDS}
        )
        tmp_path.chmod(0o755)
        environment = {
            "PATH": os.environ["PATH"],
            "DATA_DIR": str(settings.data_dir),
            "DATABASE_URL": restored,
            "REDIS_URL": str(settings.redis_url),
            "ENCRYPTION_KEYS": KEYRING,
        }
        for command in ("doctor", "restore-check"):
            done = await asyncio.to_thread(
                commands.tolsey, command, folder=tmp_path, settings=environment
            )
            assert "ENCRYPTION_KEYS" not in [
                line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED")
            ], done.stdout
        assert done.stdout.endswith("left 0\n"), done.stdout + done.stderr
        assert await kept(restored) == before
        await _emptied(again)
        async with (
            running(again, timers=False, poll_seconds=0.1) as live,
            browsing(live) as browser,
        ):
            browser.cookies = cookies
            # The map is from the backup, and names the process of then until its lease has passed.
            await until(lambda: len(live.service.runtime.slots.epochs) == SLOTS)
            assert await read(Seller(browser, seller.organization_id, seller.store_id)) == answered
    finally:
        drill.end()
