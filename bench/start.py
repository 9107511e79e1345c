"""What a start costs: imports with and without bytecode, the help, and the way to the first answer.

Processor time is what compares on a machine that others use; the wall clock is printed beside it. The
peer is a bare application of the same libraries, which has nothing but a route that asks PostgreSQL.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import Final, NamedTuple

from bench import measure

IMPORT: Final = "import gc; gc.disable(); import tolsey.service, tolsey.server"
"""As `tolsey serve` does it."""
PEER: Final = "import bench.peers.bare"
CLOCK: Final = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """Seconds of the processor, and of the wall clock."""

    processor: float
    wall: float


def run_once(command: Sequence[str], env: Mapping[str, str]) -> Taken:
    """Run a command to its end."""
    before, began = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run(  # noqa: S603 - our own commands
        command, cwd=measure.ROOT, env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL
    )
    after = getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(used, perf_counter() - began)


def serve_once(command: Sequence[str], env: Mapping[str, str]) -> Taken:
    """Start a server, wait for its first 200, and end it."""
    port, began = measure.free_port(), perf_counter()
    with measure.child([*command, str(port)], env=env) as process:
        measure.await_service(port, process)
        return Taken(sum(_processor(pid) for pid in _tree(process.pid)), perf_counter() - began)


def _tree(pid: int) -> Iterator[int]:
    """List a process and those it started, but not the servers that come along."""
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _tree(int(child))


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK


@contextmanager
def without_bytecode() -> Iterator[Mapping[str, str]]:
    """Copy the package as a checkout has it: no bytecode of its own, and none is written."""
    with tempfile.TemporaryDirectory(prefix="tolsey-bench-") as folder:
        shutil.copytree(
            measure.ROOT / "tolsey",
            Path(folder) / "tolsey",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        yield {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}


def main() -> None:
    """Print the table."""
    given = measure.arguments(__doc__ or "").parse_args()
    measure.machine(given.loop)
    python = sys.executable
    with (
        measure.servers() as (server_url, redis_url),
        measure.database(server_url) as url,
        without_bytecode() as bare,
        tempfile.TemporaryDirectory() as data,
    ):
        env = {"DATABASE_URL": url, "REDIS_URL": redis_url or "", "DATA_DIR": data}
        serve = [python, "-m", "tolsey", "serve"]
        starts: dict[str, Callable[[], Taken]] = {
            "import the service": lambda: run_once([python, "-c", IMPORT], {}),
            "the same without its bytecode": lambda: run_once([python, "-P", "-c", IMPORT], bare),
            "tolsey --help": lambda: run_once([python, "-m", "tolsey", "--help"], {}),
            "serve to the first 200": lambda: serve_once([*serve, "--port"], env),
            "the same, two processes": lambda: serve_once([*serve, "--shards", "2", "--port"], env),
            "bare Quart: import": lambda: run_once([python, "-c", PEER], {}),
            "bare Quart: serve to the first 200": lambda: serve_once(
                [python, "-m", "bench.peers.bare"], env
            ),
        }
        measure.say("starting once, so that migrations and bytecode are there")
        starts["serve to the first 200"]()
        seen: dict[str, list[Taken]] = {name: [] for name in starts}
        for number in range(1 if given.quick else 5):
            for name, start in starts.items():
                measure.say(f"{name}, {number + 1}")
                seen[name].append(start())
    rows = [
        (
            name,
            statistics.median(one.processor for one in all_of),
            statistics.median(one.wall for one in all_of),
        )
        for name, all_of in seen.items()
    ]
    measure.table("A start, median seconds", ("what", "processor", "wall"), rows)


if __name__ == "__main__":
    main()
