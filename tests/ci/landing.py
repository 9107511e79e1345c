"""Runs every stage that a landing has to pass, and lists at the end what failed: `.ci/run`.

It starts before anything is installed, so it imports nothing but Python's own modules.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.ci.stages import ROOT, Stage, report, run_stage, runs_tolsey, summarize

PACKAGES: Final = {
    "chromium": ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"),
    "nginx": ("nginx",),
    "haproxy": ("haproxy",),
    "pgbouncer": ("pgbouncer",),
    "redis-server": ("redis-server",),
}
"""Debian packages that tests use where they are installed, and the programs that each may come as."""
INSTALL: Final = """
export DEBIAN_FRONTEND=noninteractive
timeout 120 apt-get -qq update || exit 1
for package do timeout 200 apt-get -qq install -y --no-install-recommends "$package"; done
"""
SYSTEM_PYTHON: Final = "/usr/bin/python3"


def list_stages(closed: Path, python: str, *, has_npm: bool) -> list[Stage]:
    """List the stages; `closed` is a folder that only its owner may enter, for a newcomer's clone."""
    clone, home = closed / "tolsey", closed / "home"
    # A machine that keeps these needs no second download, and no check of types from nothing.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    stages = [
        Stage(
            name="set-up",
            limit_seconds=60,
            commands=[["git", "clone", "--quiet", str(ROOT), str(clone)], ["make", "setup"]],
            has_tests=False,
        ),
        Stage(
            name="check and test",
            limit_seconds=330,
            commands=[["make", "test"]],
            environment={"MYPY_CACHE_DIR": str(cache / "tolsey" / "mypy")},
        ),
        Stage(
            name="newcomer",
            limit_seconds=120,
            commands=[["make", "-C", str(clone), "newcomer", f"PYTHON={python}"]],
            environment={
                "HOME": str(home),
                "XDG_CACHE_HOME": str(home / ".cache"),
                "PIP_CACHE_DIR": str(cache / "pip"),
            },
        ),
        Stage(name="gate", limit_seconds=150, commands=[["make", "gate"]]),
    ]
    if has_npm:
        stages.append(
            Stage(name="conformance", limit_seconds=180, commands=[["make", "conformance"]])
        )
    return stages


def find_missing() -> list[str]:
    """List the packages of which no program is installed."""
    return [name for name, programs in PACKAGES.items() if not any(map(shutil.which, programs))]


def start_installing(packages: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    """Start to install packages beside the set-up; None where that isn't possible."""
    if not packages or os.getuid() != 0 or not shutil.which("apt-get"):
        return None
    fonts = ["fonts-dejavu-core"] if "chromium" in packages else []
    return subprocess.Popen(
        ["sh", "-c", INSTALL, "install", *packages, *fonts],  # noqa: S607 - as on any machine
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main() -> int:
    """Run all stages; returns an exit status."""
    os.environ["CI"] = "true"
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)  # a container sets them, a newcomer's machine does not
    installing = start_installing(find_missing())
    python = SYSTEM_PYTHON if runs_tolsey(SYSTEM_PYTHON) else sys.executable
    has_npm = shutil.which("npm") is not None
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        closed = Path(folder)
        (closed / "home").mkdir()
        for stage in list_stages(closed, python, has_npm=has_npm):
            outcomes.append(run_stage(stage, closed / "results.jsonl"))
            if installing is not None:
                installing.wait()
                installing = None
    report("")
    for name in find_missing():
        report(f"{name} is not installed: tests that need it were skipped")
    if not has_npm:
        report("npm is not installed: the official conformance suite was not run")
    report(summarize(outcomes))
    return 1 if any(outcome.red for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
