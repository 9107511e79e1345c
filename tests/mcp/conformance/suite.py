"""The official conformance suite against our transport: `python -m tests.mcp.conformance.suite`.

It is installed under `.conformance` from a lock with hashes, with the Node.js that it needs.
"""

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.journeys.conftest import free_port

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
HOME: Final = ROOT / ".conformance"
LOCK: Final = HERE / "package-lock.json"
STAMP: Final = HOME / "installed.json"
NODE: Final = HOME / "node_modules/node/bin/node"
SUITE: Final = HOME / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REQUIREMENTS: Final = ("2026-07-28", "2025-11-25")
START_SECONDS: Final = 30.0
SCENARIO: Final = re.compile(r"^(\N{CHECK MARK}|\N{BALLOT X}) ([\w-]+): ", re.MULTILINE)


def is_installed() -> bool:
    """Tell whether what stands is what the lock says."""
    return STAMP.exists() and STAMP.read_bytes() == LOCK.read_bytes() and NODE.exists()


def install() -> None:
    """Install the suite as the lock says, unless it stands."""
    if is_installed():
        return
    HOME.mkdir(exist_ok=True)
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not to be found: the suite is installed with it")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, HOME / name)
    subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--silent"], cwd=HOME, check=True)
    STAMP.write_bytes(LOCK.read_bytes())


@contextlib.contextmanager
def fixture_server() -> Iterator[str]:
    """Serve the fixtures in a process of their own; answers their address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.mcp.fixture_server", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as served:
        try:
            _await(port)
            yield f"http://localhost:{port}/mcp"
        finally:
            served.terminate()


def run(mode: str, *arguments: str) -> tuple[int, str]:
    """Run the suite once; its exit status is 0 when all that is required holds."""
    output = HOME / "results"
    command: Sequence[str | Path] = (NODE, SUITE, mode, *arguments, "-o", output)
    ran = subprocess.run(command, cwd=HOME, check=False, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def required(revision: str) -> set[str]:
    """List what the suite requires of a server of a revision."""
    text = (SUITE.parents[1] / f"requirements/{revision}.yaml").read_text()
    section = re.search(r"^server:\n((?:[ #].*\n|\n)+)", text, re.MULTILINE)
    return set(re.findall(r"^  - ([\w-]+)", section[1], re.MULTILINE)) if section else set()


def verdict(revision: str, said: str) -> str:
    """Say in one line what the suite said: its own sums count checks that are not required too."""
    scenarios = {name: mark for mark, name in SCENARIO.findall(said) if name in required(revision)}
    held = [name for name, mark in scenarios.items() if mark == "\N{CHECK MARK}"]
    rest = ", ".join(sorted(scenarios.keys() - set(held))) or "none"
    return f"{revision}: {len(held)} of {len(scenarios)} required scenarios hold; not: {rest}"


def main() -> int:
    """Run every revision's requirements; answers an exit status."""
    install()
    statuses = []
    with fixture_server() as url:
        for revision in REQUIREMENTS:
            status, said = run(
                "server",
                *("--url", url, "--requirements", revision),
                *("--expected-failures", str(HERE / f"{revision}.yml")),
            )
            log = HOME / f"{revision}.log"
            log.write_text(said)
            sys.stdout.write(f"{verdict(revision, said)}\n")
            if status:
                unexpected = said.partition("Unexpected")[2]
                sys.stdout.write(f"Not as expected, see {log.relative_to(ROOT)}:{unexpected}\n")
            statuses.append(status)
    return max(statuses)


def _await(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit("the fixture server does not answer")


if __name__ == "__main__":
    sys.exit(main())
