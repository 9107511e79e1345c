"""What an operator types, as real processes."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import commands
from tests.conftest import memory
from tests.databases import Servers
from tests.http.people import settings_of
from tests.journeys.conftest import free_port
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrations
from tolsey.storage.people import accounts, passwords
from tolsey.storage.sealing import keys

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
        environment = {**kept, "DATA_DIR": str(self.folder / "data"), **settings}
        return commands.tolsey(*arguments, folder=self.folder, settings=environment, typed=typed)


@pytest.fixture
def shell() -> Iterator[Shell]:
    # pytest's own folders are closed to the user that the servers run as
    folder = Path(tempfile.mkdtemp(prefix="tolsey-shell-", dir=memory()))
    folder.chmod(0o755)
    yield Shell(folder)
    shutil.rmtree(folder)


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


async def test_a_process_that_a_newer_schema_asks_too_much_of_says_so_in_one_line(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    newer = "INSERT INTO schema_migrations (number, name, compatible_from) VALUES (9001, '9001_wide', 20)"
    await database.execute(newer)
    assert shell.tolsey("migrate", **address).stdout == "0 migrations applied\n"
    narrower = (
        newer.replace("9001_wide", "9002_narrow").replace("9001", "9002").replace("20)", "9001)")
    )
    await database.execute(narrower)
    refused = shell.tolsey("serve", "--port", "0", **address)
    assert refused.returncode == 1
    assert refused.stderr == (
        "Error: The database has migration 9002_narrow, which this version cannot work with: start one"
        " that knows migration 9001.\n"
    )


async def test_a_known_administrator_gets_back_in_and_another_joins_the_organization(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    first = shell.tolsey("admin", "create", " Ann@Example.com ", **address)
    arguments = ("admin", "create", "--password-stdin")
    second = shell.tolsey(*arguments, "bob@example.com", typed=f"{PASSWORD}\n", **address)
    made = await accounts.find_user(database, "ann@example.com")
    refused = shell.tolsey(*arguments, "ann@example.com", typed=PASSWORD, **address)
    unchanged = await accounts.find_user(database, "ann@example.com")
    back = shell.tolsey(*arguments, "ann@example.com", "--existing", typed=PASSWORD, **address)
    known = await accounts.find_user(database, "ann@example.com")

    administrator, password = first.stdout.splitlines()
    assert made is not None
    assert unchanged == made
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith("Error: ann@example.com has an account already: with --existing ")
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


async def test_nobody_is_made_an_administrator_under_a_name_that_was_mistyped(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    refused = shell.tolsey("admin", "create", "anne@example.com", "--existing", **address)

    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert (
        line == "Error: There is no account anne@example.com. Leave out --existing to create one."
    )
    assert await accounts.find_user(database, "anne@example.com") is None


def lines_of(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Read what the doctor said, by setting."""
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return {name: (word, what) for word, name, what in lines}


def test_the_doctor_says_what_is_set_and_what_answers_503(shell: Shell) -> None:
    secret = "c" * 32
    seen = shell.tolsey("doctor", CRON_SECRET=secret, OPERATOR_EMAIL="o@example.com")

    assert seen.returncode == 1, seen.stderr
    assert secret not in seen.stdout
    said = lines_of(seen)
    assert said["CRON_SECRET"] == ("set", "opens /api/cron/*")
    assert said["LLM_MODEL"] == ("MISSING", "/api/chat answers 503 without it")
    assert said["OPERATOR_EMAIL"] == ("set", "is told of alerts")
    assert said["METRICS_TOKEN"][0] == "default"
    assert not (shell.folder / "data").exists()


def test_the_doctor_names_what_a_public_service_must_be_told_about_proxies(shell: Shell) -> None:
    public = {"BASE_URL": "https://tolsey.example", "ENCRYPTION_KEYS": "t1:" + "A" * 43}
    said = lines_of(shell.tolsey("doctor", **public))

    assert said["METRICS_TOKEN"] == ("MISSING", "/metrics answers 503 without it")
    word, what = said["TRUSTED_PROXIES"]
    assert (word, what.partition(",")[0]) == ("default", "behind a proxy all visitors count as one")


def test_the_doctor_says_that_an_api_version_is_too_old_to_verify_revenue(shell: Shell) -> None:
    old = lines_of(shell.tolsey("doctor", COMMERCE_API_VERSION="2026-04"))
    new = lines_of(shell.tolsey("doctor", COMMERCE_API_VERSION="2026-07"))

    word, what = old["COMMERCE_API_VERSION"]
    assert word == "FAILED"
    assert "api_version_too_old" in what
    assert new["COMMERCE_API_VERSION"][0] == "set"


COMPLETE = {
    "CRON_SECRET": "c" * 32,
    "PAYMENTS_SECRET_KEY": "sk_test_1",
    "PAYMENTS_WEBHOOK_SECRET": "whsec_1",
    "LLM_MODEL": "one",
    **{
        f"PAYMENTS_PRICE_{plan}_{cadence}": f"price_{plan}_{cadence}"
        for plan in ("PRO", "MAX5", "MAX20")
        for cadence in ("MONTHLY", "YEARLY")
    },
}
"""All that is needed but the addresses."""


async def test_the_doctor_ends_well_when_all_is_set_and_reached(
    shell: Shell, address: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as model:
        place = f"http://127.0.0.1:{model.getsockname()[1]}"
        seen = shell.tolsey("doctor", **COMPLETE, **address, LLM_BASE_URL=place)

    assert seen.returncode == 0, seen.stdout
    reached = [line.split()[1] for line in seen.stdout.splitlines() if line.startswith("reached")]
    servers = ("DATABASE_URL", "clock", "migrations", "REDIS_URL", "clock")
    assert reached == [*servers, "LLM_BASE_URL"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "postgresql://u:sesame@127.0.0.1:1/x"),
        ("REDIS_URL", "redis://:sesame@127.0.0.1:1/0"),
        ("LLM_BASE_URL", "http://127.0.0.1:1"),
        ("MAIL_URL", "smtp://u:sesame@127.0.0.1:1"),
    ],
)
async def test_the_doctor_says_what_is_set_and_out_of_reach(
    shell: Shell, address: dict[str, str], variable: str, value: str
) -> None:
    seen = shell.tolsey("doctor", **{**COMPLETE, **address, variable: value})

    assert seen.returncode == 1
    assert "sesame" not in seen.stdout
    assert lines_of(seen)[variable][0] == "FAILED"


KEYS = "one:" + "A" * 43
OTHER_KEYS = "two:" + "E" * 43


async def test_keys_of_ones_own_on_another_machine_are_accepted_once_by_the_doctor(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    await keys.open_vault(database, settings_of(encryption_keys=KEYS))
    moved = {**COMPLETE, **address, "ENCRYPTION_KEYS": OTHER_KEYS}

    stopped = shell.tolsey("serve", "--port", "0", **moved)
    seen = shell.tolsey("doctor", **moved)
    accepted = shell.tolsey("doctor", "--accept-keys", **moved)

    assert (stopped.returncode, seen.returncode) == (1, 1)
    (line,) = [line for line in stopped.stderr.splitlines() if not line.startswith("{")]
    assert line.startswith("Error: ENCRYPTION_KEYS lacks a key that the data are sealed with: one.")
    assert "tolsey doctor --accept-keys" in line
    assert lines_of(seen)["ENCRYPTION_KEYS"][0] == "FAILED"
    assert accepted.stdout.startswith("accepted two\ngiven up one: ")
    assert "FAILED" not in accepted.stdout
    assert (await keys.open_vault(database, settings_of(encryption_keys=OTHER_KEYS))).key_ids


async def test_older_identities_are_counted_and_then_moved_from_a_terminal(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    # Of stores that are gone there is no salt any more: their buyers are linked by nobody.
    await database.execute(
        "INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, customer_hash)"
        " SELECT 'store_' || n % 2, n, now(), false, '{}', repeat('0', 64) FROM generate_series(1, 5) n"
    )
    wanted = {**address, "ENCRYPTION_KEYS": KEYS}
    command = "rehash-identities"

    counted = shell.tolsey(command, "--dry-run", **wanted)
    one = shell.tolsey(command, "--store", "store_1", "--page-size", "1", **wanted)
    rest = shell.tolsey(command, **wanted)
    again = shell.tolsey(command, "--dry-run", **wanted)

    assert (counted.returncode, again.returncode) == (1, 0)
    assert counted.stdout.splitlines()[0].split() == ["CommerceOrder.customerHash", "5"]
    assert one.returncode == rest.returncode == 0, one.stderr + rest.stderr
    assert "rehashed 3, left 0" in one.stdout
    assert "rehashed 2, left 0" in rest.stdout
    names = await database.fetch("SELECT DISTINCT store_id, customer_hash FROM commerce_orders")
    assert len(names) == len({row["customer_hash"] for row in names}) == 2


async def test_what_has_served_its_time_is_counted_and_let_go_from_a_terminal(
    shell: Shell, address: dict[str, str], database: Database
) -> None:
    await database.execute(
        "INSERT INTO commerce_webhook_events SELECT 's', n::text, 't', NULL, 'd', NULL,"
        " now() - n * interval '3 days' FROM generate_series(1, 5) n"
    )
    counted = shell.tolsey("retention", "--dry-run", **address)
    swept = shell.tolsey("retention", **address)

    (line,) = [one for one in counted.stdout.splitlines() if "commerce_webhook_events" in one]
    assert line.split() == [
        "commerce_webhook_events",
        *("7", "days", "after", "created_at", "prune-webhook-deliveries", "3"),
    ]
    assert "webhookDeliveries          3" in swept.stdout.splitlines()
    assert len(await database.fetch("SELECT FROM commerce_webhook_events")) == 2


@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_port_in_use_is_one_line_before_anything_else_starts(shell: Shell, shards: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        stopped = shell.tolsey("serve", "--port", port, "--shards", shards)

    assert (stopped.returncode, stopped.stdout) == (1, "")
    (line,) = stopped.stderr.splitlines()
    assert line.startswith(f"Error: 127.0.0.1:{port}: another program listens there.")
    assert not (shell.folder / "data").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - refused
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ENCRYPTION_KEYS": KEYS}, "BASE_URL"),
        ({"BASE_URL": "https://tolsey.example"}, "ENCRYPTION_KEYS"),
    ],
    ids=["a loopback address", "made keys"],
)
def test_a_host_beyond_this_machine_wants_an_address_and_keys(
    shell: Shell, host: str, settings: dict[str, str], named: str
) -> None:
    stopped = shell.tolsey("serve", "--host", host, "--port", "0", **settings)

    assert (stopped.returncode, stopped.stdout) == (1, "")
    (line,) = stopped.stderr.splitlines()
    assert line.startswith(f"Error: {named}: must be ")
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


def test_two_messages_of_one_name_stop_the_start_with_one_line(shell: Shell) -> None:
    plugin = shell.folder / "plugin.py"
    plugin.write_text(
        "from tolsey.runtime.messages import Message\n"
        "KIND = 'job'\n"
        "class Tick(Message[None]): ...\n"
        "from tolsey.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, str(plugin), "serve", "--port", str(free_port())],
        env={**os.environ, "DATA_DIR": str(shell.folder / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Two messages are named job.Tick: one in __main__ and one in"
        " tolsey.actors.job.messages. Rename one of them.\n"
    )


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
