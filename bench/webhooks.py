"""How many signed order deliveries a second are accepted, and how long one waits for its 200.

Each delivery is 10.7 KB, an order of its own under a delivery id of its own; when it is answered it
is on disk, deduplicated and applied. Ours runs on Hypercorn, as shipped, and unchanged on uvicorn;
the peer (`bench/peers/receiver.py`) on both as well. Every server is one process with a database of
its own on the same PostgreSQL, and the load generator shares the machine's cores with all of them.
"""

import argparse
import asyncio
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench import measure, orders
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec

CONNECTIONS = (1, 16, 64)
MOST = {1: 3_000, 16: 14_000, 64: 16_000}
"""How many requests are made ready for a run; one that uses them up ends early."""

CLIENT_ID = "bench-client"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server that runs."""

    name: str
    port: int
    path: str


def start_ours(
    stack: ExitStack, server: str, database_url: str, redis_url: str | None, folder: Path
) -> Contestant:
    """Start the real service as it is served in production, or on uvicorn."""
    port, platform_port = measure.free_port(), measure.free_port()
    env = {
        "DATABASE_URL": database_url,
        "DATA_DIR": str(folder),
        "BASE_URL": f"http://127.0.0.1:{port}",
        "COMMERCE_URL_TEMPLATE": f"http://127.0.0.1:{platform_port}/{{shop}}",
        "LOG_LEVEL": "warning",
        **({"REDIS_URL": redis_url} if redis_url else {}),
    }
    command = ["-m", "tolsey", "serve", "--port", str(port), "--server", server]
    folder.mkdir(parents=True, exist_ok=True)
    process = stack.enter_context(
        measure.child([sys.executable, *command], env=env, log=folder / "service.log")
    )
    try:
        measure.await_service(port, process)
    except RuntimeError:
        print((folder / "service.log").read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        raise
    asyncio.run(connect(port, platform_port))
    return Contestant(f"tolsey on {server}", port, "/api/webhooks/commerce/events")


async def connect(port: int, platform_port: int) -> None:
    """Sign up and connect a store to a sandbox shop, as a seller would."""
    base = f"http://127.0.0.1:{port}"
    platform = Platform(published_folder=None)
    platform.add_shop(
        ShopSpec(domain=orders.SHOP, client_id=CLIENT_ID, client_secret=orders.SECRET)
    )
    async with (
        platform.serve(port=platform_port),
        httpx.AsyncClient(base_url=base, headers={"Origin": base}, timeout=30) as browser,
    ):

        async def post(path: str, **body: Any) -> dict[str, Any]:
            answer = await browser.post(path, json=body)
            answer.raise_for_status()
            parsed: dict[str, Any] = answer.json()
            return parsed

        account = await post(
            "/api/auth/signup",
            email=f"bench-{secrets.token_hex(4)}@example.com",
            password=secrets.token_urlsafe(16),
            organizationName="Bench",
        )
        store = await post(
            "/api/stores", organizationId=account["organization"]["id"], name="Bench"
        )
        await post(
            "/api/integrations/commerce/custom-app",
            storeId=store["id"],
            shopDomain=orders.SHOP,
            clientId=CLIENT_ID,
            clientSecret=orders.SECRET,
        )


def start_peer(stack: ExitStack, server: str, database_url: str, folder: Path) -> Contestant:
    """Start the receiver a user would write instead."""
    port = measure.free_port()
    process = stack.enter_context(
        measure.child(
            [sys.executable, "-m", "bench.peers.receiver", server, str(port)],
            env={"DATABASE_URL": database_url, "PEER_SECRET": orders.SECRET},
            log=folder / f"peer-{server}.log",
        )
    )
    measure.await_port(port, process)
    return Contestant(f"FastAPI on {server}", port, "/webhooks")


class Runs:
    """Sends loads, never the same delivery twice."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.first = 0

    def load(self, server: Contestant, connections: int) -> dict[str, Any]:
        """Run one load and answer what the generator saw."""
        most = MOST[connections] // (10 if self.quick else 1)
        given = {
            "port": server.port,
            "path": server.path,
            "connections": connections,
            "first": self.first,
            "most": most,
            "warm_seconds": 0.1 if self.quick else 0.3,
            "seconds": 0.3 if self.quick else 2.0,
        }
        self.first += most
        answer = subprocess.run(  # noqa: S603 - our own generator
            [sys.executable, "-m", "bench.load", json.dumps(given)],
            cwd=measure.ROOT,
            check=True,
            capture_output=True,
            timeout=30,
        )
        seen: dict[str, Any] = json.loads(answer.stdout)
        if seen["refused"]:
            raise RuntimeError(f"{server.name} refused {seen['refused']}: {seen['first_refusal']}")
        return seen


def compare(servers: list[Contestant], *, quick: bool) -> None:
    """Let the servers take turns under every load, and print what came of it."""
    runs, rounds = Runs(quick=quick), 1 if quick else 3
    for connections in CONNECTIONS:
        seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number in range(rounds):
            for server in servers if number % 2 == 0 else reversed(servers):
                one = runs.load(server, connections)
                seen[server.name].append(one)
                measure.say(
                    f"{connections} connections, round {number + 1} of {rounds}: {server.name}:"
                    f" {one['per_second']:,.0f}/s, p50 {one['p50_ms']:.2f} ms,"
                    f" p99 {one['p99_ms']:.2f} ms"
                )
        medians = {name: [_median(found, key) for key in KEYS] for name, found in seen.items()}
        speed, _, slowest = medians["FastAPI on uvicorn"]
        measure.table(
            f"{connections} connections (medians of {rounds}; ratios to FastAPI on uvicorn)",
            ["server", "accepted/s", "p50 ms", "p99 ms", "throughput", "p99"],
            [
                (name, *found, f"{found[0] / speed:.2f}", f"{found[2] / slowest:.2f}")
                for name, found in medians.items()
            ],
        )


KEYS = ("per_second", "p50_ms", "p99_ms")


def _median(found: list[dict[str, Any]], key: str) -> float:
    return statistics.median(float(one[key]) for one in found)


def main() -> None:
    given: argparse.Namespace = measure.arguments(__doc__ or "").parse_args()
    measure.machine("uvloop")
    print(f"The load generator shares the {os.cpu_count()} cores with server and PostgreSQL.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        servers = []
        kinds = ("hypercorn",) if given.quick else ("hypercorn", "uvicorn")
        for kind in kinds:
            url = stack.enter_context(measure.database(server_url))
            servers.append(start_ours(stack, kind, url, redis_url, folder / kind))
            measure.say(f"{servers[-1].name} runs")
        for kind in ("uvicorn",) if given.quick else reversed(kinds):
            url = stack.enter_context(measure.database(server_url))
            servers.append(start_peer(stack, kind, url, folder))
            measure.say(f"{servers[-1].name} runs")
        compare(servers, quick=given.quick)


if __name__ == "__main__":
    main()
