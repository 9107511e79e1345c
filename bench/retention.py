"""What webhooks notice of a night's sweep, and how many rows a second it lets go.

A table of deliveries, half of which have served their time, in the database of a real `tolsey serve`. Loads of
signed deliveries take turns: one with nothing else under way, one while `prune-webhook-deliveries` deletes a
share of what is due, started as an operator starts it. The load generator shares the machine with all of them.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import httpx

from bench import measure
from bench.webhooks import Contestant, start_ours
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

ROUNDS = 3
CONNECTIONS = 4
MOST = 6_000
"""How many deliveries are made ready for a load."""
SECONDS, WARM_SECONDS = 4.0, 0.5
AIM = 1.3
WAIT_SECONDS = 600.0
"""Longer than the route waits for a run before it says that it goes on."""
OPERATOR, PASSWORD = "operator@example.com", "correct horse battery"
PLANT = """
INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
SELECT 'store_' || n % 500, $1 || '-' || n, 'orders/create', 'shop-' || n % 500 || '.example', now() - $2::text::interval
FROM generate_series(1, $3) n
"""
PORTION = 500_000
DUE, KEPT = "8 days", "1 day"


class Sweeping:
    """A service whose table of deliveries is swept, and the loads it is under."""

    def __init__(self, server: Contestant, database_url: str) -> None:
        self._server = server
        self._database_url = database_url
        self._sent = 0
        self._planted = 0

    def plant(self, rows: int, age: str) -> None:
        """Write deliveries that are so old."""

        async def insert() -> None:
            # A connection of its own: the service's end what takes longer than a minute.
            connection = await asyncpg.connect(self._database_url)
            try:
                for start in range(0, rows, PORTION):
                    self._planted += 1
                    count = min(PORTION, rows - start)
                    await connection.execute(PLANT, f"planted-{self._planted}", age, count)
                await connection.execute("VACUUM ANALYZE commerce_webhook_events")
            finally:
                await connection.close()

        measure.in_thread(insert())

    def load(self) -> dict[str, Any]:
        """Send deliveries for some seconds, and answer what the generator saw."""
        given = {
            "port": self._server.port,
            "path": self._server.path,
            "connections": CONNECTIONS,
            "first": self._sent,
            "most": MOST,
            "warm_seconds": WARM_SECONDS,
            "seconds": SECONDS,
        }
        self._sent += MOST
        answer = subprocess.run(  # noqa: S603 - our own generator
            [sys.executable, "-m", "bench.load", json.dumps(given)],
            cwd=measure.ROOT,
            check=True,
            capture_output=True,
            timeout=120,
        )
        seen: dict[str, Any] = json.loads(answer.stdout)
        assert not seen["refused"], seen["first_refusal"]
        return seen

    async def load_while_sweeping(self) -> tuple[dict[str, Any], float, int]:
        """Load while a sweep runs; answer with what was seen, the sweep's seconds and its rows."""
        base = f"http://127.0.0.1:{self._server.port}"
        async with httpx.AsyncClient(
            base_url=base, headers={"Origin": base}, timeout=WAIT_SECONDS
        ) as operator:
            login = {"email": OPERATOR, "password": PASSWORD}
            (await operator.post("/api/auth/login", json=login)).raise_for_status()
            sweep = asyncio.create_task(swept(operator))
            seen = await asyncio.to_thread(self.load)
            if sweep.done():
                measure.say("the sweep was over before the load: ask for more --rows")
            return (seen, *await sweep)


async def swept(operator: httpx.AsyncClient) -> tuple[float, int]:
    """Run the job to its end; answer its seconds and rows."""
    began, rows = perf_counter(), 0
    while True:
        run = await operator.post(
            "/api/admin/crons/prune-webhook-deliveries/run", json={"reason": "A bench."}
        )
        run.raise_for_status()
        if run.status_code == 200:
            rows += run.json()["outcome"]["deleted"]
            return perf_counter() - began, rows


def make_operator(database_url: str) -> None:
    async def make() -> None:
        database = Database(database_url)
        await database.open()
        try:
            await administrators.create_administrator(database, OPERATOR, PASSWORD)
        finally:
            await database.close()

    measure.in_thread(make())


def compare(sweeping: Sweeping, rows: int, rounds: int) -> None:
    """Let loads with and without a sweep take turns, and print what came of it."""
    sweeping.plant(rows // 2, KEPT)
    alone: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    took: list[float] = []
    for number in range(rounds):
        sweeping.plant(rows // 2 // rounds, DUE)
        alone.append(sweeping.load())
        seen, seconds, deleted = asyncio.run(sweeping.load_while_sweeping())
        beside.append(seen)
        took.append(deleted / seconds)
        measure.say(
            f"round {number + 1} of {rounds}: p99 {alone[-1]['p99_ms']:.1f} ms alone,"
            f" {seen['p99_ms']:.1f} ms beside a sweep of {deleted:,} rows in {seconds:.1f} s"
        )
    lines = {"no sweep": alone, "during a sweep": beside}
    found = {
        name: [statistics.median(float(one[key]) for one in runs) for key in KEYS]
        for name, runs in lines.items()
    }
    measure.table(
        f"{CONNECTIONS} connections, {rows:,} rows of which half are due (medians of {rounds})",
        ["deliveries", "accepted/s", "p50 ms", "p99 ms"],
        [(name, *values) for name, values in found.items()],
    )
    ratio = found["during a sweep"][2] / found["no sweep"][2]
    print(f"p99 {ratio:.2f} times that of no sweep (aim: at most {AIM})")
    print(f"rows swept a second: {statistics.median(took):,.0f}, meanwhile")


KEYS = ("per_second", "p50_ms", "p99_ms")


def main() -> None:
    asked = measure.arguments(__doc__ or "")
    asked.add_argument(
        "--rows", type=int, default=480_000, help="rows of the table, half of them due"
    )
    given: argparse.Namespace = asked.parse_args()
    measure.machine("uvloop")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        url = stack.enter_context(measure.database(server_url))
        server = start_ours(stack, "hypercorn", url, redis_url, folder / "service")
        make_operator(url)
        compare(Sweeping(server, url), given.rows, 1 if given.quick else ROUNDS)


if __name__ == "__main__":
    main()
