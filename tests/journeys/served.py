"""Processes of the service as an operator starts them, and people and platforms who ask them all the time."""

import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx

from tests.http.people import KEYRING
from tests.journeys.conftest import EVENTS, Seller, order_body, sign_up, signed
from tests.piped import SECONDS, PipedProcesses
from tests.timing import until
from tolsey.storage.database import Database

CLIENTS = 8


@dataclass
class Fleet(PipedProcesses):
    """Two processes of the service behind one port, and their parent."""

    port: int
    settings: dict[str, str]
    server: str = "hypercorn"

    def start(self) -> None:
        unset = {"DATABASE_URL", "REDIS_URL"} - set(self.settings)
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tolsey",
                    "serve",
                    "--port",
                    str(self.port),
                    "--shards",
                    "2",
                    "--server",
                    self.server,
                ],
                env={
                    **kept,
                    "ENCRYPTION_KEYS": KEYRING,
                    "PYTHONUNBUFFERED": "1",
                    "BASE_URL": f"http://127.0.0.1:{self.port or 8000}",
                    **self.settings,
                },
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    async def until_said(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        end = time.monotonic() + SECONDS
        while len(said := self.said(event)) < times:
            assert time.monotonic() < end, (self.folder / "log").read_text()
            assert self.process.poll() is None, (self.folder / "log").read_text()
            await anyio.sleep(0.02)
        return said

    async def ready(self) -> str:
        """Answer the address once both serve."""
        (line,) = await self.until_said("service.ready")
        return str(line["address"])

    def children(self) -> list[int]:
        """List the processes that ever served, in their order."""
        return [line["pid"] for line in self.said("process.ready")]

    async def wait(self) -> int:
        return await anyio.to_thread.run_sync(self.process.wait, SECONDS)


@dataclass
class Load:
    """What platforms saw that deliver one order after the other, and a merchant who reads and writes."""

    address: str
    answers: Counter[int] = field(default_factory=Counter)
    kept: set[str] = field(default_factory=set)
    """The deliveries that were answered with 200."""
    failures: list[tuple[float, httpx.HTTPError]] = field(default_factory=list)
    """When what was not answered was begun, and why."""
    over: bool = False

    async def deliver(self, numbers: Iterator[int], keeps: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=1 if keeps else 0)
        async with httpx.AsyncClient(base_url=self.address, timeout=SECONDS, limits=limits) as http:
            while not self.over:
                number = next(numbers)
                body, delivery = order_body(number), f"delivery-{number}"
                headers = signed(body, delivery_id=delivery)
                if await self._status(http.post(EVENTS, content=body, headers=headers)) == 200:
                    self.kept.add(delivery)

    async def work(self, seller: Seller) -> None:
        """Read as a merchant does, and write."""
        of_company = {"organizationId": seller.organization_id}
        listings = "/api/sell/listings"
        made = await seller.post(listings, **of_company, title="A business")
        assert made.status_code == 201, made.text
        while not self.over:
            for path in ("/api/stores", "/api/credits", listings):
                await self._status(seller.browser.get(path, params=of_company))
            renamed = {"title": f"Business {self.answers.total()}"}
            path = f"{listings}/{made.json()['id']}"
            await self._status(seller.browser.patch(path, json=renamed))

    async def _status(self, asking: Awaitable[httpx.Response]) -> int:
        begun = time.monotonic()
        try:
            status = (await asking).status_code
        except httpx.HTTPError as error:
            self.failures.append((begun, error))
            await anyio.sleep(0.01)
            return 0
        self.answers[status] += 1
        return status

    async def more(self, answers: int) -> None:
        """Wait for so many more answers."""
        wanted = self.answers.total() + answers
        await until(lambda: self.answers.total() >= wanted)


@asynccontextmanager
async def load(address: str, *, works: bool = False) -> AsyncIterator[Load]:
    """Deliver orders, half of the clients over connections they keep, half over new ones.

    Somebody `works` meanwhile, on request.
    """
    made, numbers = Load(address), itertools.count(1)
    async with httpx.AsyncClient(
        base_url=address, headers={"Origin": address}, timeout=SECONDS
    ) as browser:
        seller = await sign_up(browser)
        # What is not its subject asks again where it is asked to, as every client may have to.
        with anyio.fail_after(SECONDS):
            while (connected := await seller.connect()).status_code == 503:
                await anyio.sleep(float(connected.headers.get("Retry-After", "1")))
        assert connected.status_code == 200, connected.text
        async with anyio.create_task_group() as tasks:
            for client in range(CLIENTS):
                tasks.start_soon(made.deliver, numbers, client % 2 == 0)
            if works:
                tasks.start_soon(made.work, seller)
            await made.more(50)
            yield made
            made.over = True


async def recorded(database: Database) -> set[str]:
    """List what the test delivered; the platform itself tells of the end of an import."""
    rows = await database.fetch(
        "SELECT delivery_id FROM commerce_webhook_events WHERE delivery_id LIKE 'delivery-%'"
    )
    return {row["delivery_id"] for row in rows}
