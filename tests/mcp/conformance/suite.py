"""The official conformance suite against our transport: `python -m tests.mcp.conformance.suite`.

It is installed under `.conformance` from a lock with hashes, with the Node.js that it needs.
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
HOME: Final = ROOT / ".conformance"
LOCK: Final = HERE / "package-lock.json"
STAMP: Final = HOME / "installed.json"
NODE: Final = HOME / "node_modules/node/bin/node"
SUITE: Final = HOME / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REQUIREMENTS: Final = ("2026-07-28", "2025-11-25")
START_SECONDS: Final = 30.0


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


def free_port() -> int:
    """Find a port that nobody listens on."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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


def run(mode: str, *arguments: str) -> int:
    """Run the suite once; its exit status is 0 when all that is required holds."""
    output = HOME / "results"
    command: Sequence[str | Path] = (NODE, SUITE, mode, *arguments, "-o", output)
    return subprocess.run(command, cwd=HOME, check=False).returncode


def main() -> int:
    """Run every revision's requirements; answers an exit status."""
    install()
    with fixture_server() as url:
        statuses = [
            run(
                "server",
                *("--url", url, "--requirements", revision),
                *("--expected-failures", str(HERE / f"{revision}.yml")),
            )
            for revision in REQUIREMENTS
        ]
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
