"""One process of the service as the campaign sees it: its life, its cables, and a wire to ask it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.link import Link

CHECKOUT = Path(__file__).parents[3]
START_SECONDS = 90.0
LONGEST_LINE = 1 << 20


class Wire:
    """A connection to a process: many requests at once, each answered under its number."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def connect(cls, socket: Path) -> "Wire":
        """Connect, or raise OSError."""
        return cls(*await asyncio.open_unix_connection(str(socket), limit=LONGEST_LINE))

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._listening.done()

    async def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request; raises TimeoutError, or OSError when the process is gone."""
        if self.closed:
            raise ConnectionResetError
        self._count += 1
        number = self._count
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._writer.write(json.dumps({**request, "n": number}).encode() + b"\n")
        try:
            async with asyncio.timeout(seconds):
                return await future
        finally:
            self._waiting.pop(number, None)

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                answer = json.loads(line)
                waiting = self._waiting.pop(answer["n"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except OSError:
            pass  # as at the end of the stream
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError())
            self._writer.transport.abort()

    async def close(self) -> None:
        """Hang up."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Terms:
    """What all processes of a campaign have in common."""

    lease_seconds: float
    keyring: str
    planted: str = ""


class Node:
    """A place for a process: whoever runs there has the same cables and the same socket."""

    def __init__(self, place: int, ground: Ground, terms: Terms) -> None:
        self.place = place
        self.name = f"n{place}"
        self.id = ""
        """What the process that runs here calls itself."""
        self.redis = Link(ground.redis_socket)
        self.postgres = Link(ground.postgres_socket)
        self.counters: Counter[str] = Counter()
        """What the processes here counted, as far as it was heard of."""
        self.told_to_leave = False
        self.skew_seconds = 0.0
        self.stopped = False
        self._heard: dict[str, int] = {}
        self._terms = terms
        self._socket = ground.folder / f"{self.name}.sock"
        self._log = ground.folder / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._connecting = asyncio.Lock()

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Node"]:
        """Have the cables in place; whatever still runs at the end is killed."""
        async with self.redis.standing(), self.postgres.standing():
            try:
                yield self
            finally:
                await self.kill()

    @property
    def pid(self) -> int | None:
        """The process that runs here, if one does."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process else None

    @property
    def serving(self) -> bool:
        """Whether a balancer would send it requests."""
        return self.pid is not None and bool(self.id) and not self.told_to_leave

    async def start(self) -> None:
        """Start a process and wait until it serves; one that ends before is started again."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            process = self._spawn()
            while process.poll() is None and time.monotonic() < until:
                with suppress(OSError, TimeoutError):
                    status = await self.ask({"do": "status"}, 2.0)
                    self.id = status["id"] if process is self._process else ""
                    return
                await asyncio.sleep(0.05)
            if process is not self._process:
                return  # somebody has ended it
            await self.kill()
        raise TimeoutError(f"{self.name} does not serve: {self.tail()}")

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.id, self.told_to_leave, self._heard = "", False, {}
        self._socket.unlink(missing_ok=True)
        options = {
            "socket": str(self._socket),
            "database": f"postgresql://postgres@127.0.0.1:{self.postgres.port}/postgres?sslmode=disable",
            "redis": f"redis://127.0.0.1:{self.redis.port}/0",
            "lease_seconds": self._terms.lease_seconds,
            "skew_seconds": self.skew_seconds,
            "keyring": self._terms.keyring,
            "planted": self._terms.planted,
        }
        with self._log.open("ab") as log:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.campaigns.cluster.node"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=CHECKOUT,
            )
        assert process.stdin is not None
        process.stdin.write(json.dumps(options).encode() + b"\n")
        process.stdin.flush()
        return process

    async def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Ask the process that runs here; raises TimeoutError, or OSError when there is none."""
        async with self._connecting:
            if self._wire is None or self._wire.closed:
                self._wire = await Wire.connect(self._socket)
            wire = self._wire
        return await wire.ask(request, seconds)

    async def listen(self) -> None:
        """Take in what the process has counted so far."""
        if self.serving and not self.stopped:
            answer = await self.ask({"do": "status"}, 2.0)
            for name, value in answer["counters"].items():
                self.counters[name] += value - self._heard.get(name, 0)
                self._heard[name] = value

    async def kill(self) -> None:
        """End the process without a word."""
        await self._end(signal.SIGKILL, 10)

    async def leave(self, seconds: float) -> bool:
        """Tell the process to hand over and end; false when it had to be killed."""
        self.told_to_leave = True
        if await self._end(signal.SIGTERM, seconds):
            return True
        await self.kill()
        return False

    def stop(self) -> None:
        """Stop the process in the middle of whatever it does."""
        if self.pid is not None:
            self.stopped = True
            os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a stopped process go on as if no time had passed."""
        self.stopped = False
        if self.pid is not None:
            os.kill(self.pid, signal.SIGCONT)

    async def _end(self, which: signal.Signals, seconds: float) -> bool:
        process = self._process
        if process is None:
            return True
        if process.poll() is None:
            process.send_signal(which)
        until = time.monotonic() + seconds
        while process.poll() is None:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.01)
        if process is self._process:
            self._process, self.id, self.stopped = None, "", False
            if process.stdin is not None:
                process.stdin.close()
            if self._wire is not None:
                await self._wire.close()
                self._wire = None
        return True

    def keep_log(self, path: Path) -> None:
        """Copy what the processes here have written."""
        if self._log.exists():
            shutil.copyfile(self._log, path)

    def tail(self) -> str:
        """Show the end of what the processes here have written."""
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""
