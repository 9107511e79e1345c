"""What an operator types, as real processes."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Servers
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrations
from tolsey.storage.people import accounts, passwords

PASSWORD = "correct horse battery"
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH")


@dataclass
class Shell:
    """A shell in an empty folder, with nothing set but what a test sets."""

    folder: Path

    def tolsey(
        self, *arguments: str, typed: str = "", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return subprocess.run(
            [sys.executable, "-m", "tolsey", *arguments],
            env={**kept, "DATA_DIR": str(self.folder / "data"), **settings},
            cwd=self.folder,
            input=typed,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    # pytest's own folders are closed to the user that the servers run as
    tmp_path.chmod(0o755)
    return Shell(tmp_path)


@pytest.fixture
def address(servers: Servers, database_url: str) -> dict[str, str]:
    """Set the address of a migrated database."""
    return {"DATABASE_URL": database_url, "REDIS_URL": servers.redis_url}


def test_a_fresh_folder_is_migrated_once_and_gets_its_administrator(shell: Shell) -> None:
    first = shell.tolsey("migrate")
    created = shell.tolsey("admin", "create", "ann@example.com", "--password-stdin", typed=PASSWORD)
    again = shell.tolsey("migrate")

    names = [step.name for step in migrations()]
    said = [*(f"applied {name}" for name in names), f"{len(names)} migrations applied"]
    assert first.stdout.splitlines() == said, first.stderr
    assert created.stdout.startswith("administrator ann@example.com of organization org_")
    assert again.stdout == "0 migrations applied\n"


async def test_a_known_administrator_gets_back_in_and_another_joins_the_organization(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    first = shell.tolsey("admin", "create", " Ann@Example.com ", **address)
    arguments = ("admin", "create", "--password-stdin")
    second = shell.tolsey(*arguments, "bob@example.com", typed=f"{PASSWORD}\n", **address)
    made = await accounts.find_user(database, "ann@example.com")
    back = shell.tolsey(*arguments, "ann@example.com", typed=PASSWORD, **address)
    known = await accounts.find_user(database, "ann@example.com")

    administrator, password = first.stdout.splitlines()
    assert made is not None
    assert await passwords.matches(password.removeprefix("password "), made.password_hash)
    assert known is not None
    assert await passwords.matches(PASSWORD, known.password_hash)
    assert PASSWORD not in second.stdout
    organization_id = administrator.rpartition(" ")[2]
    assert await accounts.role_in(database, made.id, organization_id) == "owner"
    assert back.stdout == f"administrator ann@example.com of organization {organization_id}\n"
    assert second.stdout == f"administrator bob@example.com of organization {organization_id}\n"


@pytest.mark.parametrize(
    ("email", "password", "named"),
    [("ann", PASSWORD, "email"), ("ann@example.com", "short", "password")],
)
def test_an_administrator_who_could_not_sign_in_is_not_made(
    shell: Shell, email: str, password: str, named: str
) -> None:
    refused = shell.tolsey("admin", "create", email, "--password-stdin", typed=password)

    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"Error: {named}: ")
    assert not (shell.folder / "data").exists()


def test_the_doctor_says_what_is_set_and_what_answers_503(shell: Shell) -> None:
    secret = "c" * 32
    seen = shell.tolsey("doctor", CRON_SECRET=secret)

    assert seen.returncode == 0
    assert secret not in seen.stdout
    words = {line.split()[1]: line.split()[0] for line in seen.stdout.splitlines()}
    assert words["CRON_SECRET"] == "set"
    assert words["COMMERCE_CLIENT_SECRET"] == "MISSING"
    assert "the three compliance webhooks answer 503 without it" in seen.stdout
    assert not (shell.folder / "data").exists()


@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        ("serve", "CRON_SECRET", "sesame"),
        ("serve", "BASE_URL", "ftp://example.com"),
        ("serve", "LOG_LEVEL", "loud"),
        ("migrate", "ENCRYPTION_KEYS", "sesame"),
        ("doctor", "DATABASE_URL", "mysql://host"),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_line_that_names_it(
    shell: Shell, command: str, variable: str, value: str
) -> None:
    stopped = shell.tolsey(command, **{variable: value})

    assert (stopped.returncode, stopped.stdout) == (1, "")
    (line,) = stopped.stderr.splitlines()
    assert line.startswith(f"Error: {variable}: ")
    assert value not in line


def test_a_database_out_of_reach_is_said_in_one_line(shell: Shell) -> None:
    stopped = shell.tolsey("migrate", DATABASE_URL="postgresql://u:sesame@127.0.0.1:1/x")

    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line.startswith("Error: The database is out of reach: ")
    assert "sesame" not in line


def test_a_folder_that_cannot_be_used_is_said_in_one_line(shell: Shell) -> None:
    stopped = shell.tolsey("migrate", DATA_DIR="/proc/nowhere")

    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line.startswith("Error: The embedded servers cannot be kept here: ")


async def test_the_map_of_slots_is_printed_with_no_process_running(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    await database.execute(
        "UPDATE slot_epochs SET owner = CASE WHEN slot < 4 OR slot = 7 THEN 'gone-1' END,"
        " pinned_to = CASE slot WHEN 7 THEN 'gone-1' END"
    )
    told = shell.tolsey("shards", LEASE_SECONDS="1", **address)
    read = json.loads(shell.tolsey("shards", "--json", LEASE_SECONDS="1", **address).stdout)

    assert told.returncode == 0, told.stderr
    assert re.search(r"^gone-1 .* silent .* 5$", told.stdout, re.MULTILINE)
    assert "gone-1: 0-3,7" in told.stdout
    assert "1024 slots wait for an owner" in told.stdout
    assert "pinned: 7 to gone-1" in told.stdout
    assert read["unowned_slots"] == 1024
    assert read["pinned"] == {"7": "gone-1"}


async def test_the_map_is_printed_without_redis(shell: Shell, address: dict[str, str]) -> None:
    nowhere = {**address, "REDIS_URL": "redis://127.0.0.1:1/0"}
    told = shell.tolsey("shards", **nowhere)

    assert told.returncode == 0, told.stderr
    assert "Redis is out of reach" in told.stdout


async def test_the_map_of_an_empty_database_is_an_error_of_one_line(
    shell: Shell, servers: Servers, empty_database_url: str
) -> None:
    stopped = shell.tolsey("shards", DATABASE_URL=empty_database_url, REDIS_URL=servers.redis_url)

    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert stopped.stderr.startswith("Error: The database has no map of slots yet")


def test_the_map_of_a_database_out_of_reach_is_an_error_of_one_line(shell: Shell) -> None:
    away = {"DATABASE_URL": "postgresql://u:sesame@127.0.0.1:1/x", "REDIS_URL": "redis://x"}
    stopped = shell.tolsey("shards", **away)

    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line.startswith("Error: The database is out of reach: ")
