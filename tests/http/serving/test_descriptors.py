"""A process whose descriptors run out, seen from outside."""

import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.http.serving.conftest import head_of
from tests.journeys.conftest import free_port
from tolsey.server import ServerName

GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
STAND_IN = Path(__file__).with_name("stand_in.py")
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits are read from /proc")


@asynccontextmanager
async def process(server: ServerName, soft: int, hard: int) -> AsyncIterator[tuple[int, int]]:
    """Answer the process and its port once it serves."""
    port = free_port()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    command = [sys.executable, str(STAND_IN), server, str(port)]
    with subprocess.Popen(command, preexec_fn=limit, stderr=subprocess.DEVNULL) as started:  # noqa: PLW1509 - no threads of ours run yet
        try:
            with anyio.fail_after(60):
                while not await answered(port):
                    assert started.poll() is None
                    await anyio.sleep(0.02)
            yield started.pid, port
        finally:
            started.kill()


async def answered(port: int) -> bool:
    try:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(GET)
            return (await head_of(stream)).startswith(b"http/1.1 204")
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
        return False


@linux
async def test_the_start_raises_the_limit_as_far_as_it_may(server_name: ServerName) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(hard, 2_000)
    async with process(server_name, soft=200, hard=most) as (pid, _):
        (line,) = [
            line
            for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
            if line.startswith("Max open files")
        ]
        assert line.split()[3:5] == [str(most), str(most)]


@linux
async def test_idle_connections_beyond_all_descriptors_keep_nobody_out(
    server_name: ServerName,
) -> None:
    async with process(server_name, soft=100, hard=100) as (pid, port), AsyncExitStack() as flood:
        for _ in range(300):
            await flood.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        for _ in range(20):
            assert await answered(port)
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 100
