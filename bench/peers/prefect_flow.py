"""Runs the graph of a launch as a flow of Prefect, in an environment of its own (`prefect/requirements.lock`).

Its server runs beside it on a database of the same PostgreSQL. It reads lines of JSON: first the graph and the database,
then how many flows are to run at once, again and again; it answers each with the seconds that they took.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

TRIES = 240
STOP_SECONDS = 20
Run = Callable[[int], Awaitable[None]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(url: str, home: str) -> Iterator[None]:
    """Run the server as its command starts it, on a database of its own."""
    port = free_port()
    api = f"http://127.0.0.1:{port}/api"
    os.environ |= {
        "PREFECT_HOME": home,
        "PREFECT_API_URL": api,
        "PREFECT_API_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{url.partition('://')[2]}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*command, "--port", str(port)], **quiet)  # type: ignore[call-overload]  # noqa: S603
    try:
        for _ in range(TRIES):
            if server.poll() is not None:
                raise SystemExit("Prefect's server ended")
            with suppress(OSError), urllib.request.urlopen(f"{api}/health"):  # noqa: S310 - our own
                break
            time.sleep(0.5)
        else:
            raise SystemExit("Prefect's server does not answer")
        yield
    finally:
        server.terminate()
        server.wait(STOP_SECONDS)


def main() -> None:
    said = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory() as home, served(said["url"], home):
        import prefect  # noqa: PLC0415 - settings are read when it is imported
        from prefect import flow, task  # noqa: PLC0415

        @task(persist_result=True)
        async def nothing(milestone: str) -> str:
            return milestone

        @flow(persist_result=True)
        async def whole_graph(n: int) -> int:
            """Begin each step once all before it are done."""
            tasks: dict[str, asyncio.Task[None]] = {}

            async def one(id: str, before: list[str]) -> None:
                for each in before:
                    await tasks[each]
                await nothing(id)

            for id, before in said["graph"]:
                tasks[id] = asyncio.create_task(one(id, before))
            await asyncio.gather(*tasks.values())
            return n

        async def run(count: int) -> None:
            await asyncio.gather(*(whole_graph(n) for n in range(count)))

        print(json.dumps({"version": prefect.__version__}), flush=True)
        asyncio.run(answer(run))


async def answer(run: Run) -> None:
    """Run as many as each line says."""
    await run(1)
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.perf_counter()
        await run(json.loads(line))
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
