"""How many signed payment events a second are accepted, and how long one waits for its 200.

Each event is 4.8 KB, an `invoice.paid` of its own; when it is answered it is on disk, deduplicated,
read, and found to be an organization's. Ours runs on Hypercorn, as shipped; the peer
(`bench/peers/payments.py`) on uvicorn, with the processor's own package, and keeps the body. Every
server is one process with a database of its own on the same PostgreSQL, and the load generator
shares the machine's cores with both.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg

from bench import events, measure
from bench.webhooks import CONNECTIONS, KEYS, Contestant

MOST = {1: 4_000, 16: 16_000, 64: 16_000}
"""How many requests are made ready for a run; one that uses them up ends early."""


def start_ours(
    stack: ExitStack, database_url: str, redis_url: str | None, folder: Path
) -> Contestant:
    """Start the real service with an organization that the events are of."""
    port = measure.free_port()
    env = {
        "DATABASE_URL": database_url,
        "DATA_DIR": str(folder / "data"),
        "BASE_URL": f"http://127.0.0.1:{port}",
        "PAYMENTS_WEBHOOK_SECRET": events.SECRET,
        "LOG_LEVEL": "warning",
        **({"REDIS_URL": redis_url} if redis_url else {}),
    }
    command = [sys.executable, "-m", "tolsey", "serve", "--port", str(port)]
    process = stack.enter_context(measure.child(command, env=env, log=folder / "service.log"))
    measure.await_service(port, process)
    asyncio.run(open_organization(database_url))
    return Contestant("tolsey on hypercorn", port, "/api/webhooks/payments")


async def open_organization(database_url: str) -> None:
    """Write the organization down; how one signs up is not measured."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "INSERT INTO organizations (id, name) VALUES ($1, 'Bench')", events.ORGANIZATION
        )
    finally:
        await connection.close()


def start_peer(stack: ExitStack, database_url: str, folder: Path) -> Contestant:
    """Start the receiver a user would write instead."""
    port = measure.free_port()
    process = stack.enter_context(
        measure.child(
            [sys.executable, "-m", "bench.peers.payments", str(port)],
            env={"DATABASE_URL": database_url, "PEER_SECRET": events.SECRET},
            log=folder / "peer.log",
        )
    )
    measure.await_port(port, process)
    return Contestant("FastAPI on uvicorn", port, "/webhooks")


def load(server: Contestant, connections: int, first: int, *, quick: bool) -> dict[str, Any]:
    """Run one load and answer what the generator saw."""
    given = {
        "port": server.port,
        "path": server.path,
        "bodies": "events",
        "connections": connections,
        "first": first,
        "most": MOST[connections] // (10 if quick else 1),
        "warm_seconds": 0.1 if quick else 0.3,
        "seconds": 0.3 if quick else 2.0,
    }
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
    rounds, first = 1 if quick else 3, 0
    for connections in CONNECTIONS:
        seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number in range(rounds):
            for server in servers if number % 2 == 0 else reversed(servers):
                one = load(server, connections, first, quick=quick)
                first += MOST[connections]
                seen[server.name].append(one)
                measure.say(
                    f"{connections} connections, round {number + 1} of {rounds}: {server.name}:"
                    f" {one['per_second']:,.0f}/s, p99 {one['p99_ms']:.2f} ms"
                )
        medians = {
            name: [statistics.median(float(one[key]) for one in found) for key in KEYS]
            for name, found in seen.items()
        }
        speed, _, slowest = medians[servers[-1].name]
        measure.table(
            f"{connections} connections (medians of {rounds}; ratios to {servers[-1].name})",
            ["server", "accepted/s", "p50 ms", "p99 ms", "throughput", "p99"],
            [
                (name, *found, f"{found[0] / speed:.2f}", f"{found[2] / slowest:.2f}")
                for name, found in medians.items()
            ],
        )


def main() -> None:
    given = measure.arguments(__doc__ or "").parse_args()
    measure.machine("uvloop")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        ours, peers = (stack.enter_context(measure.database(server_url)) for _ in range(2))
        servers = [
            start_ours(stack, ours, redis_url, folder),
            start_peer(stack, peers, folder),
        ]
        compare(servers, quick=given.quick)


if __name__ == "__main__":
    main()
