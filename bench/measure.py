"""What every bench shares: its arguments, its database, its children, its rounds and its table."""

import argparse
import asyncio
import os
import platform
import re
import resource
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
import uvloop

from tolsey.storage.embedded.servers import EmbeddedServers

ROOT = Path(__file__).resolve().parent.parent
STARTED = monotonic()


def arguments(question: str) -> argparse.ArgumentParser:
    """Give the parser of a bench; `--quick` is the smoke form that a test can run."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="a few seconds, only to see it work")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    return parser


def run(main: Callable[[], Awaitable[None]], loop: str) -> None:
    """Run a bench on the event loop of that name."""
    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())  # type: ignore[arg-type]  # a coroutine function, as all benches give


def machine(loop: str) -> None:
    """Print what the figures stand on."""
    print(
        f"Python {platform.python_version()}, {loop}, {os.cpu_count()} cores,"
        f" {platform.system()} {platform.release()}"
    )


def say(text: str) -> None:
    """Show progress, with the seconds since the start."""
    print(f"  [{monotonic() - STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; numbers to the right."""
    cells = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(len(column), *(len(row[n]) for row in cells)) for n, column in enumerate(columns)]
    print(f"\n{title}")
    for row in (list(columns), ["-" * width for width in widths], *cells):
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join((first, *rest)))
    sys.stdout.flush()


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 100 else f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


async def alternate(
    contestants: Mapping[str, Callable[[], Awaitable[float]]], rounds: int
) -> dict[str, float]:
    """Let contestants take turns for some rounds; answer the median of each."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        # Every other round goes backwards, so that nobody always runs on a warm machine.
        names = list(contestants) if number % 2 == 0 else list(contestants)[::-1]
        for name in names:
            value = await contestants[name]()
            found[name].append(value)
            say(f"round {number + 1} of {rounds}: {name}: {value:,.0f}")
    return {name: statistics.median(values) for name, values in found.items()}


def rss_bytes(pid: int | None = None) -> int:
    """Say how much memory a process holds now."""
    status = Path(f"/proc/{pid or 'self'}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def peak_rss_bytes() -> int:
    """Say how much memory this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def servers(kept: Path | None = None) -> Iterator[tuple[str, str | None]]:
    """Give the URLs of PostgreSQL and Redis: those of the environment, else embedded ones.

    The folder of embedded ones goes at the end, unless it is one to be kept.
    """
    if os.environ.get("DATABASE_URL"):
        yield os.environ["DATABASE_URL"], os.environ.get("REDIS_URL")
        return
    folder = kept or Path(tempfile.mkdtemp(prefix="tolsey-bench-"))
    folder.chmod(0o755)  # the servers may run as another user
    try:
        say("starting the embedded servers")
        with EmbeddedServers(folder / "servers") as embedded:
            yield embedded.database_url, embedded.redis_url
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server_url: str, kept: str | None = None) -> Iterator[str]:
    """Give the URL of an empty database of the bench's own, dropped at the end.

    One to be kept has its name, is made when it is not there, and stays.
    """
    name = kept or f"tolsey_bench_{secrets.token_hex(4)}"
    try:
        in_thread(_administer(server_url, f"CREATE DATABASE {name}"))
    except asyncpg.DuplicateDatabaseError:
        if not kept:
            raise
    try:
        parts = urlsplit(server_url)
        yield urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        if not kept:
            in_thread(_administer(server_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


def on_a_database(question: str | None, compare: Callable[..., Awaitable[None]]) -> None:
    """Be a bench that takes no argument of its own: it compares on an empty database, given as its URL."""
    given = arguments(question or "").parse_args()
    machine(given.loop)
    with servers() as (server_url, _), database(server_url) as url:
        run(partial(compare, url, quick=given.quick), given.loop)


async def _administer(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def in_thread(work: Any) -> Any:
    """Run a coroutine to its end on a loop of its own, outside any running loop."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


def free_port() -> int:
    """Find a free port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def child(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program beside the bench; it is ended with the block, and killed if it does not end."""
    with ExitStack() as stack:
        sink = stack.enter_context(log.open("wb")) if log else subprocess.DEVNULL
        process = subprocess.Popen(  # noqa: S603 - the benches' own commands
            list(command),
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT if log else subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_port(port: int, process: subprocess.Popen[bytes], *, seconds: float = 60.0) -> None:
    """Wait until something listens on a port of loopback, or say that the program ended."""
    until = monotonic() + seconds
    while monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def await_service(port: int, process: subprocess.Popen[bytes], *, seconds: float = 180.0) -> None:
    """Wait until the service answers: its port is there before its tables are."""
    until = monotonic() + seconds
    while monotonic() < until:
        await_port(port, process, seconds=seconds)
        try:
            if httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=seconds).is_success:
                return
        except httpx.TransportError:
            pass  # the port was closed again
        sleep(0.05)
    raise RuntimeError(f"nothing answers on port {port}")
