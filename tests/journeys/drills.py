"""Drills of the runbook: every command is read from docs/operate/runbook.md."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import memory
from tests.databases import Servers
from tolsey.storage.embedded import binaries, processes
from tolsey.storage.embedded.home import ServerHome
from tolsey.storage.embedded.processes import PostgresServer

__all__ = ["drill"]

RUNBOOK = Path(__file__).parents[2] / "docs" / "operate" / "runbook.md"
PORT = 5432
LONGEST_SECONDS = 120


def block(title: str) -> str:
    """Return the commands in the runbook's section with this title."""
    (section,) = re.findall(
        rf"^### {re.escape(title)}\n(.*?)(?=^#|\Z)", RUNBOOK.read_text(), re.DOTALL | re.MULTILINE
    )
    (found,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return str(found)


def setting(name: str) -> str:
    """Return the value of a PostgreSQL setting from the runbook."""
    (found,) = re.findall(rf"^{name} = (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    return str(found).strip("'").replace("''", "'")


@dataclass
class Drill:
    """A PostgreSQL that archives its log, a folder for backups, and one for a second server."""

    home: ServerHome
    server: PostgresServer
    programs: Path
    backup: Path
    restored: Path

    @property
    def url(self) -> str:
        return self.home.database_url

    @property
    def restored_url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.restored}&port={PORT}"

    def run(self, title: str, **given: str | Path) -> str:
        """Run the commands of a section of the runbook, as the user of the servers."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "BACKUP": str(self.backup),
            "RESTORED": str(self.restored),
            "STANDBY": str(self.restored),
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
        """Read what the second server said."""
        written = self.restored / "log"
        return written.read_text() if written.exists() else ""

    def starts(self, program: str) -> bool:
        """Whether a program of PostgreSQL starts: that of a wheel may crash at once."""
        asked = subprocess.run(
            [self.programs / program, "--version"], check=False, capture_output=True
        )
        return asked.returncode == 0

    def lose(self) -> None:
        """Lose the first server in the middle of what it does, as its machine is lost."""
        assert self.server._process is not None
        self.server._process.send_signal(signal.SIGQUIT)  # without a checkpoint or a word
        self.server.wait_stopped()

    def end(self) -> None:
        """Stop the second server."""
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
