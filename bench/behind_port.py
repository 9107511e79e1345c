"""The service itself, as many processes behind one port as are wanted, and deliveries to its stores.

A part of `bench/shards.py`. Every form runs at once with a database of its own on the same servers
and takes turns at the load; the processes of the forms that wait are idle.
"""

import asyncio
import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from threading import Timer
from typing import Any

import asyncpg
import httpx

from bench import footprint, measure, orders
from bench.asking import Result
from bench.costs import Meter, between, supported
from bench.shops_load import READY, shop
from bench.webhooks import CLIENT_ID
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec

PATH = "/api/webhooks/commerce/events"
STORES = 48
"""As many as the largest plan includes, so that every process owns some."""
CONNECTIONS = (64, 256)
"""The second is as much as one process wants to group commits and frames well when there are four."""
NEW_CONNECTIONS = 16
SLEEPERS = 3_000
MOST = 24_000
"""How many requests are made ready for a run; one that uses them up ends early."""
KEYS = ("per_second", "p50_ms", "p99_ms")
COSTS = {"tolsey": 1e3, "postgresql": 1e3, "redis": 1e3, "wal_bytes": 1e-3, "redis_bytes": 1e-3}
COST_COLUMNS = ("tolsey", "PostgreSQL", "Redis", "log KB", "Redis KB")


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs."""

    processes: int
    port: int
    pid: int
    meter: Meter
    database_url: str
    folder: Path


def start(
    stack: ExitStack, processes: int, database_url: str, redis_url: str | None, folder: Path
) -> Served:
    """Start `tolsey serve --shards N` and connect its stores."""
    port, platform_port = measure.free_port(), measure.free_port()
    folder.mkdir(parents=True, exist_ok=True)
    env = {
        "DATABASE_URL": database_url,
        "DATA_DIR": str(folder),
        "BASE_URL": f"http://127.0.0.1:{port}",
        "COMMERCE_URL_TEMPLATE": f"http://127.0.0.1:{platform_port}/{{shop}}",
        "LOG_LEVEL": "warning",
        **({"REDIS_URL": redis_url} if redis_url else {}),
    }
    command = ["-m", "tolsey", "serve", "--port", str(port), "--shards", str(processes)]
    log = folder / "service.log"
    process = stack.enter_context(measure.child([sys.executable, *command], env=env, log=log))
    try:
        measure.await_service(port, process)
        asyncio.run(_connect(port, platform_port, database_url))
    except Exception:
        print(log.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        raise
    measure.say(f"{processes} behind a port: {STORES} stores are connected")
    meter = Meter(database_url, redis_url, process.pid)
    return Served(processes, port, process.pid, meter, database_url, folder)


async def _connect(port: int, platform_port: int, database_url: str) -> None:
    """Sign up, and connect every store to a sandbox shop of its own."""
    base = f"http://127.0.0.1:{port}"
    platform = Platform(published_folder=None)
    for number in range(STORES):
        platform.add_shop(
            ShopSpec(domain=shop(number), client_id=CLIENT_ID, client_secret=orders.SECRET)
        )
    database = await asyncpg.connect(database_url)
    try:
        async with (
            platform.serve(port=platform_port),
            httpx.AsyncClient(base_url=base, headers={"Origin": base}, timeout=60) as browser,
        ):
            organization = await _sign_up(browser)
            await database.execute(
                "UPDATE organizations SET plan = 'max_20x' WHERE id = $1", organization
            )
            for number in range(STORES):
                await _open_store(browser, organization, number)
            for _ in range(600):  # what follows a connection calls the platform, which ends here
                if not await database.fetchval("SELECT count(*) FROM outbox"):
                    return
                await asyncio.sleep(0.1)
            raise RuntimeError("the outbox does not run dry")
    finally:
        await database.close()


async def _sign_up(browser: httpx.AsyncClient) -> str:
    account = await _post(
        browser,
        "/api/auth/signup",
        email=f"bench-{secrets.token_hex(4)}@example.com",
        password=secrets.token_urlsafe(16),
        organizationName="Bench",
    )
    return str(account["organization"]["id"])


async def _open_store(browser: httpx.AsyncClient, organization: str, number: int) -> None:
    store = await _post(browser, "/api/stores", organizationId=organization, name=f"Bench {number}")
    await _post(
        browser,
        "/api/integrations/commerce/custom-app",
        storeId=store["id"],
        shopDomain=shop(number),
        clientId=CLIENT_ID,
        clientSecret=orders.SECRET,
    )


async def _post(browser: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await browser.post(path, json=body)
    answer.raise_for_status()
    parsed: dict[str, Any] = answer.json()
    return parsed


class Deliveries:
    """Sends loads, never the same delivery twice."""

    def __init__(self, *, quick: bool) -> None:
        self._quick = quick
        self._first = 0

    def load(self, served: Served, connections: int) -> Result:
        """Deliver to stores that are awake; answer what was seen and what a delivery cost."""
        seconds = 0.5 if self._quick else 3.0
        return self._metered(served, {"seconds": seconds, "connections": connections})

    def wake(self, served: Served, first: int, number: int) -> Result:
        """Deliver once to each of many stores that are asleep."""
        return self._metered(
            served,
            {"seconds": 30.0, "warm_seconds": 0, "first_shop": first, "shops": number},
            most=number,
        )

    def replaced(self, served: Served) -> Result:
        """Replace every process by a new one while deliveries come, each over a new connection."""
        given = {"new": True, "connections": NEW_CONNECTIONS, "seconds": 3 if self._quick else 10}
        with self._sender(served, given, MOST) as sender:
            hup = Timer(1.0, os.kill, (served.pid, signal.SIGHUP))
            hup.start()
            try:
                return _seen(sender)
            finally:
                hup.cancel()

    def _metered(self, served: Served, given: dict[str, Any], most: int = MOST) -> Result:
        with self._sender(served, given, most) as sender:
            before = asyncio.run(served.meter.read()) if supported() else {}
            found = _seen(sender)
            after = asyncio.run(served.meter.read()) if before else {}
        if before:
            found["cost"] = between(before, after, found["sent"])
        return found

    @contextmanager
    def _sender(
        self, served: Served, given: dict[str, Any], most: int
    ) -> Iterator["subprocess.Popen[str]"]:
        """Start the load generator; it makes its requests before it sends the first."""
        whole = {
            "port": served.port,
            "path": PATH,
            "connections": CONNECTIONS[-1],
            "new": False,
            "shops": STORES,
            "first_shop": 0,
            "first": self._first,
            "most": most,
            "warm_seconds": 0.3 if self._quick else 1.0,
            **given,
        }
        self._first += most
        sender = subprocess.Popen(  # noqa: S603 - our own generator
            [sys.executable, "-m", "bench.shops_load", json.dumps(whole)],
            cwd=measure.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert sender.stdout is not None
            assert sender.stdout.readline().strip() == READY
            yield sender
        finally:
            sender.kill()
            sender.wait()


def _seen(sender: "subprocess.Popen[str]") -> Result:
    """Let the load generator send, and answer what it saw."""
    printed, _ = sender.communicate("\n", timeout=90)
    found: Result = json.loads(printed)
    return found


def compare(
    processes: tuple[int, ...], server_url: str, redis_url: str | None, folder: Path, *, quick: bool
) -> None:
    """Let the forms take turns under the load, and print what came of it."""
    rounds = 1 if quick else 3
    deliveries = Deliveries(quick=quick)
    seen: dict[str, list[Result]] = {}
    with ExitStack() as stack:
        forms = []
        for number in processes:
            url = stack.enter_context(measure.database(server_url))
            forms.append(start(stack, number, url, redis_url, folder / f"service-{number}"))
        for turn, connections in product(range(rounds), CONNECTIONS):
            for served in forms if turn % 2 == 0 else reversed(forms):
                found = deliveries.load(served, connections)
                _note(seen, f"{served.processes}, {connections} connections", found)
        sizes = {}
        for served, turn in product(forms, range(rounds)):
            first = STORES + turn * SLEEPERS
            work = footprint.add_sleepers(served.database_url, served.folder, first, SLEEPERS)
            sizes = asyncio.run(work)
            found = deliveries.wake(served, first, SLEEPERS)
            _note(seen, f"{served.processes}, asleep", found)
        _print(seen, rounds)
        _print_replaced([(served, deliveries.replaced(served)) for served in forms[1:]])
        asyncio.run(footprint.report(forms[0].database_url, sizes))


def apart(
    number: int, server_url: str, redis_url: str | None, folder: Path, *, quick: bool
) -> None:
    """Deliver to services of one process side by side, which share nothing: no delivery crosses.

    What one of them costs more than one alone is what so many processes cost on these cores.
    """
    rows: list[list[Any]] = []
    with ExitStack() as stack, ThreadPoolExecutor(number) as threads:
        forms = []
        for one in range(number):
            url = stack.enter_context(measure.database(server_url))
            forms.append(start(stack, 1, url, redis_url, folder / f"apart-{one}"))
        senders = [Deliveries(quick=quick) for _ in forms]
        costs: dict[tuple[int, int], list[float]] = {}
        for _, connections, services in product(range(1 if quick else 3), CONNECTIONS, (1, number)):
            each = connections // services
            load = partial(Deliveries.load, connections=each)
            found = list(threads.map(load, senders[:services], forms))
            sent = sum(one["sent"] for one in found)
            cost = sum(one["cost"]["tolsey"] * one["sent"] for one in found) / sent
            costs.setdefault((connections, services), []).append(cost * 1e3)
            measure.say(f"{services} apart, {connections} connections: {cost * 1e3:.2f} ms each")
    for connections in CONNECTIONS:
        alone, beside = (statistics.median(costs[connections, n]) for n in (1, number))
        rows.append([f"{connections}", alone, beside, beside / alone])
    measure.table(
        f"Our processor ms of a delivery: one service, and {number} that share nothing but the machine",
        ["connections in all", "one", f"{number} apart", "ratio"],
        rows,
    )


def _note(seen: dict[str, list[Result]], name: str, found: Result) -> None:
    seen.setdefault(name, []).append(found)
    measure.say(
        f"{name}: {found['per_second']:,.0f} deliveries/s, p50 {found['p50_ms']:.1f} ms,"
        f" p99 {found['p99_ms']:.1f} ms, refused {found['failures'] or 0}"
    )


def _print(seen: dict[str, list[Result]], rounds: int) -> None:
    rows: list[list[Any]] = []
    single: dict[str, float] = {}
    loads = list(dict.fromkeys(_load_of(name) for name in seen))
    for name, found in sorted(seen.items(), key=lambda item: loads.index(_load_of(item[0]))):
        middle = [statistics.median(one[key] for one in found) for key in KEYS]
        costs = []
        for what, factor in COSTS.items():
            values = [one["cost"].get(what, 0.0) * factor for one in found if "cost" in one]
            costs.append(f"{statistics.median(values):,.2f}" if values else "")
        one_process = single.setdefault(_load_of(name), middle[0])
        refused = sum(one["failed"] for one in found)
        rows.append([name, *middle, f"{middle[0] / one_process:.2f}", refused, *costs])
    measure.table(
        f"Webhook deliveries to `tolsey serve --shards N`: to {STORES} stores that are awake, and with"
        f" {CONNECTIONS[-1]} connections one to each of {SLEEPERS:,} asleep (medians of {rounds}; ratio"
        " to one process; processor ms and KB of each delivery)",
        ["processes", "accepted/s", "p50 ms", "p99 ms", "ratio", "refused", *COST_COLUMNS],
        rows,
    )


def _load_of(name: str) -> str:
    return name.partition(", ")[2]


def _print_replaced(found: list[tuple[Served, Result]]) -> None:
    measure.table(
        f"Deliveries while every process is replaced (SIGHUP), {NEW_CONNECTIONS} senders, a new"
        " connection each time",
        ["processes", "deliveries", "failed", "p50 ms", "p99 ms", "longest ms"],
        [
            (
                str(served.processes),
                one["asks"],
                f"{one['failed']} {one['failures'] or ''}".strip(),
                *(one[key] for key in ("p50_ms", "p99_ms", "longest_ms")),
            )
            for served, one in found
        ],
    )
