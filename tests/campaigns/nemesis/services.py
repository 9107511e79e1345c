"""One `tolsey serve` of the campaign: its cables to PostgreSQL, to Redis and from its clients."""

import asyncio
import bisect
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import httpx

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.link import Link
from tests.campaigns.cluster.processes import CHECKOUT, Node, Terms
from tests.journeys.conftest import free_port
from tolsey.storage.embedded import binaries
from tolsey.storage.runtime import commit_statement

BASE = "http://127.0.0.1:8000"
"""What every service calls itself: clients come to each by a cable of its own."""
BEAT = re.compile(
    rb"HSET\r\n\$\d+\r\n[^\r]*:processes\r\n\$\d+\r\n([0-9a-f]{12}-\d+-\d+-[0-9a-f]{8})\r\n"
)
"""How a beat goes over the cable to Redis (`storage/runtime/presence.py`); others may delete the line of a dead one."""
PREPARED = re.compile(rb"(\w+)\0" + re.escape(commit_statement.MARK.encode()))
"""What the statement of a group commit is called when it is prepared."""
FEW_DESCRIPTORS = 8


@dataclass(frozen=True, slots=True)
class Setting(Terms):
    """What all services of a campaign have in common beside that."""

    commerce_url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables, of what else stands outside."""
    is_direct: bool = False
    """Whether services reach PostgreSQL, and clients them, past the cables: where no fault befalls those."""


class Service(Node):
    """A place for a service: whoever runs there has the same cables and the same port."""

    def __init__(
        self, place: int, ground: Ground, terms: Setting, *, shards: int, beats: "Beats"
    ) -> None:
        super().__init__(place, ground, terms)
        self.redis = Link(ground.redis_socket, partial(beats.heard, self.name))
        self.commits = Commits()
        self.postgres = Link(ground.postgres_socket, passes=self.commits.passes)
        self.port = free_port()
        self.front = Link(self.port)
        self._ground = ground
        self.shards = shards
        self.checkout = CHECKOUT
        """Whose code runs here, from the next start on."""
        self.wire_form = "1"
        self._setting = terms
        self._http: httpx.AsyncClient

    @property
    def door(self) -> int:
        """The port that clients ask."""
        return self.port if self._setting.is_direct else self.front.port

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Service"]:
        """Have the cables in place; whatever still runs at the end is killed."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.front.standing())
            await stack.enter_async_context(super().standing())
            self._http = await stack.enter_async_context(
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}")
            )
            yield self

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.id, self.told_to_leave = "", False
        # Each connects as a user of its own, by which the rows tell who did what.
        where = f"postgresql://{self.name}@127.0.0.1:{self.postgres.port}/postgres?"
        if self._setting.is_direct:
            where = (
                f"postgresql://{self.name}@/postgres?host={self._ground.postgres_socket.parent}&"
            )
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.campaigns.nemesis.serve"),
                    *(self._setting.planted or "-", "serve"),
                    *("--port", str(self.port), "--shards", str(self.shards)),
                ],
                env={
                    **kept,
                    "DATABASE_URL": f"{where}sslmode=disable",
                    "REDIS_URL": f"redis://127.0.0.1:{self.redis.port}/0",
                    "LEASE_SECONDS": str(self._setting.lease_seconds),
                    "ENCRYPTION_KEYS": self._setting.keyring,
                    "COMMERCE_URL_TEMPLATE": self._setting.commerce_url,
                    "BASE_URL": BASE,
                    "WIRE_FORM": self.wire_form,
                    **self._setting.environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.checkout,
            )
        return self._process

    async def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Look whether the service that runs here is well; raises TimeoutError or OSError."""
        del request
        try:
            answer = await self._http.get("/api/health", timeout=seconds)
        except httpx.HTTPError as error:
            raise ConnectionResetError(repr(error)) from error
        if answer.status_code != httpx.codes.OK:
            raise ConnectionRefusedError(answer.text)
        return {"id": self.name, "counters": {}}

    def said(self, event: str) -> int:
        """Count the log lines of an event."""
        return self._log.read_bytes().count(f'"event": "{event}"'.encode())

    def signal(self, which: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if self.pid is not None:
            os.kill(self.pid, which)

    @asynccontextmanager
    async def starved(self) -> AsyncIterator[None]:
        """Leave the process no descriptor for anything new."""
        pid = self.pid
        assert pid is not None
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW_DESCRIPTORS, before[1]))
        try:
            yield
        finally:
            if self.pid == pid:
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


class Commits:
    """The group commits in a service's cable to PostgreSQL: they alone can be held there."""

    def __init__(self) -> None:
        self.held = 0
        """How many had to wait."""
        self._gate = asyncio.Event()
        self._gate.set()
        self._names: WeakKeyDictionary[object, set[bytes]] = WeakKeyDictionary()
        """What such statements are called on each connection: the driver runs others there, too."""

    def hold(self) -> None:
        """Let none pass that comes from now on."""
        self._gate.clear()

    def let_go(self) -> None:
        """Let all pass."""
        self._gate.set()

    async def passes(self, line: object, block: bytes) -> None:
        """Wait, with a block that runs a commit, for as long as they are held."""
        names = self._names.setdefault(line, set())
        names.update(PREPARED.findall(block))
        # Bind runs what was prepared: its length, a portal, then the statement (PostgreSQL 55.7).
        runs = block.startswith(b"B") and block[5:].split(b"\0", 2)[1] in names
        if runs and not self._gate.is_set():
            self.held += 1
            await self._gate.wait()


class Beats:
    """When the beats of every process passed its cable to Redis, by the time of day."""

    def __init__(self) -> None:
        self.homes: dict[str, str] = {}
        """At which service a process was heard."""
        self._at: dict[str, list[float]] = defaultdict(list)

    def heard(self, service: str, block: bytes) -> None:
        """Take in what a service sends to Redis."""
        for process in {found.decode() for found in BEAT.findall(block)}:
            self.homes[process] = service
            self._at[process].append(time.time())

    def longest_silence(self, process: str, since: float, at: float) -> float | None:
        """Tell the longest gap of a time between beats; none when it beat not before or not after."""
        beats = self._at[process]
        first, last = bisect.bisect(beats, since) - 1, bisect.bisect(beats, at)
        if first < 0 or last == len(beats):
            return None
        return max(after - before for before, after in pairwise(beats[first : last + 1]))


@asynccontextmanager
async def other_master(folder: Path) -> AsyncIterator[Path]:
    """Run another Redis, for those whom a failover led to it; answer its socket."""
    socket = folder / "other.sock"
    command = [str(binaries.valkey()), "--port", "0", "--unixsocket", str(socket)]
    with subprocess.Popen(
        [*command, "--save", "", "--dir", str(folder)], stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield socket
        finally:
            process.kill()
