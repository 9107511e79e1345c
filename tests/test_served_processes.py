"""The service as an operator starts it, tells it to reload and ends it: processes that come and go."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.test_command_line import KEPT, Shell, shell

__all__ = ["shell"]


@contextlib.contextmanager
def served(shell: Shell, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start to serve; what it says is read from its pipe."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "tolsey", "serve", "--port", "0", *arguments],
        env={**kept, "DATA_DIR": str(shell.folder / "data")},
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def until(process: subprocess.Popen[str], event: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        assert "Traceback" not in line
        if f'"{event}"' in line:
            return line
    raise AssertionError(f"{event} was never said")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_ends_well_and_soon(shell: Shell, number: int) -> None:
    with served(shell) as process:
        # The first migrations are what one sees of a start; there are many yet to come.
        until(process, "migration.applied")
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "service.ready" not in said
    assert json.loads(said.splitlines()[-1])["event"] == "service.stopped"


@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_service_that_was_told_no_address_names_the_one_where_it_listens(
    shell: Shell, shards: str
) -> None:
    with served(shell, "--shards", shards) as process:
        address = json.loads(until(process, "service.ready"))["address"]
        said = httpx.get(f"{address}/.well-known/oauth-authorization-server", trust_env=False)

    assert said.json()["issuer"] == address


@pytest.mark.parametrize("when", ["migration.applied", "service.ready"])
def test_one_process_that_is_told_to_reload_starts_anew(shell: Shell, when: str) -> None:
    with served(shell) as process:
        until(process, when)
        process.send_signal(signal.SIGHUP)
        until(process, "service.stopped")
        until(process, "service.ready")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 0, said
