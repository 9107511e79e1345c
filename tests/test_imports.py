"""What the service imports before it serves: nothing heavy that few requests need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import LONGEST_SECONDS
from tolsey.__main__ import COMMANDS, main

HEAVY = frozenset(
    {
        "PIL",
        "aiohttp",
        "graphql",
        "lxml",
        "markdown_it",
        "opentelemetry.exporter",
        "pyhanko",
        "typst",
        "tolsey.tracing",
    }
)
"""Packages that are imported where they are used: each takes up to a tenth of a second."""
SERVING = frozenset({"asyncio", "pydantic", "quart", "structlog"})
"""What a command imports when it runs, and a list of the commands does not."""


def imported_by(code: str, named: frozenset[str], folder: Path) -> list[str]:
    """List which modules of a set a fresh process has after it ran some code."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nimport json, sys; print(json.dumps(sorted({set(named)!r} & sys.modules.keys())))",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_service_imports_no_heavy_package_before_it_is_used(tmp_path: Path) -> None:
    assert imported_by("import tolsey.service, tolsey.server", HEAVY, tmp_path) == []


def test_the_help_imports_nothing_that_serves(tmp_path: Path) -> None:
    code = "from tolsey.__main__ import main\nmain(['--help'], standalone_mode=False)"
    assert imported_by(code, SERVING, tmp_path) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_of_the_help_is_found_by_its_name(name: str) -> None:
    command = main.get_command(
        main.make_context("tolsey", ["--help"], resilient_parsing=True), name
    )
    assert command is not None
    assert command.name == name
