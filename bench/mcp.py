"""Tool calls a second, how long one waits for its answer, and what it costs the processor.

The tool answers an order as `get_order` does, from memory, so that what is measured is all that stands
around a tool: reading the message, the token, the limit, the arguments, the answer in its schema. Ours
(`bench/door.py`) looks the token up in PostgreSQL behind the cache of access tokens and counts every call in
Redis; the peers, which have neither, look it up in memory and count nothing: the official Python SDK's
low-level server, fastmcp, and the TypeScript SDK on Node. All are stateless and answer JSON, one process
each; 64 agents of 64 organizations call in turn. The load generator shares the cores with all of them.
First stands `tolsey serve`, as shipped, which answers the same orders from PostgreSQL, and how many times the
official SDK's server it is, that reads nothing, on the same server.
"""

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench import calls, costs, measure
from bench.costs import Meter
from tolsey.storage.migrate import migrate
from tolsey.storage.sealing.sealed import fingerprint

SERVERS: Final = ("hypercorn", "uvicorn")
OURS: Final = {
    "tolsey serve, real orders on hypercorn": ("tolsey", "serve", "--port"),
    "tolsey serve, real orders on uvicorn": ("tolsey", "serve", "--server", "uvicorn", "--port"),
    "tolsey on hypercorn": ("bench.door", "hypercorn"),
    "tolsey on uvicorn": ("bench.door", "uvicorn"),
}
"""Ours, by the command that its port ends."""
PEERS: Final = {"SDK, low level": "bench.peers.mcp_sdk", "fastmcp": "bench.peers.mcp_fastmcp"}
CONNECTIONS: Final = (1, 16)
MOST: Final = {1: 12_000, 16: 40_000}
"""How many requests are made ready for a run; one that uses them up ends early."""
SOURCE: Final = measure.ROOT / "bench" / "peers" / "mcp_node"
NODE_HOME: Final = measure.ROOT / ".venv-bench" / "mcp_node"
NODE: Final = NODE_HOME / "node_modules" / "node" / "bin" / "node"
KEYS: Final = ("per_second", "p50_ms", "p99_ms", "cpu_us", "stores_us")

ROWS: Final = """
WITH one AS (
    SELECT n, $1::text || lpad(n::text, 2, '0') AS name, ($2::bytea[])[n + 1] AS hash
    FROM generate_series(0, $3::integer - 1) AS n
), users AS (
    INSERT INTO users (id, email, password_hash) SELECT name, name || '@example.com', '' FROM one
), organizations AS (
    INSERT INTO organizations (id, name, plan) SELECT name, 'Bench', 'max_20x' FROM one
), members AS (
    INSERT INTO members (organization_id, user_id, role) SELECT name, name, 'owner' FROM one
), stores AS (
    INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
    SELECT n::text, name, 'Bench', '', now() FROM one
), grants AS (
    INSERT INTO oauth_grants (
        id, user_id, client_id, client_name, redirect_uri, organization_id, store_id, resource,
        scopes, created_at
    ) SELECT name, name, 'bench', 'Bench', '', name, n::text, $4::text || n, '{orders:read}', now()
    FROM one
)
INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
SELECT hash, name, 'access', '{orders:read}', $5 FROM one
"""
KEPT: Final = """
WITH kept AS (
    SELECT store::text, id FROM generate_series(0, $1::integer - 1) AS store,
        generate_series(1, $2::integer) AS id
), orders AS (
    INSERT INTO commerce_orders (
        store_id, order_id, updated_at, name, currency, total_minor, current_total_minor,
        financial_status, fulfillment_status, test, source_name, customer_hash, metadata, processed_at
    ) SELECT store, id, $3, '#1001', 'EUR', 12990, 9990, 'partially_refunded', 'fulfilled', false,
        'web', $4, '{}', $3 FROM kept
), refunds AS (
    INSERT INTO commerce_refunds (
        store_id, refund_id, order_id, currency, amount_minor, processed_at
    ) SELECT store, id, id, 'EUR', 3000, $3 FROM kept
)
INSERT INTO commerce_fulfillments (
    store_id, fulfillment_id, order_id, updated_at, status, shipment_status, tracking_company
) SELECT store, id, id, $3, 'success', 'delivered', 'DHL' FROM kept
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs; `meter` reads what it costs."""

    name: str
    port: int
    path: str
    meter: Meter


def start_ours(
    stack: ExitStack, name: str, database_url: str, redis_url: str, folder: Path
) -> Served:
    """Start one of ours with its agents in a database of its own."""
    port = measure.free_port()
    base_url = f"http://127.0.0.1:{port}"
    measure.in_thread(prepare(database_url, f"bench-{port}-", f"{base_url}/api/mcp/v1/"))
    env = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "DATA_DIR": str(folder / str(port)),
        "BASE_URL": base_url,
        "LOG_LEVEL": "warning",
    }
    command = [sys.executable, "-m", *OURS[name], str(port)]
    process = stack.enter_context(measure.child(command, env=env, log=folder / f"{port}.log"))
    measure.await_port(port, process, seconds=90)
    meter = Meter(database_url, redis_url, process.pid)
    return Served(name, port, "/api/mcp/v1/{}", meter)


async def prepare(database_url: str, prefix: str, address: str) -> None:
    """Write the agents, their stores and orders down; how one consents is not measured."""
    await migrate(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        hashes = [fingerprint(token) for token in calls.TOKENS]
        until = datetime.now(UTC) + timedelta(hours=1)
        await connection.execute(ROWS, prefix, hashes, calls.AGENTS, address, until)
        customer = calls.ORDER["customer"]
        await connection.execute(KEPT, calls.AGENTS, calls.ORDERS, calls.AT, customer)
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


def start_peer(stack: ExitStack, name: str, server: str, database_url: str) -> Served:
    """Start a Python peer."""
    port = measure.free_port()
    command = [sys.executable, "-m", PEERS[name], server, str(port)]
    process = stack.enter_context(measure.child(command))
    measure.await_port(port, process)
    return Served(f"{name} on {server}", port, "/mcp", Meter(database_url, None, process.pid))


def start_node(stack: ExitStack, database_url: str) -> Served | None:
    """Start the TypeScript peer; None where npm is not found."""
    if not install_node():
        measure.say("npm is not to be found: the TypeScript SDK is left out")
        return None
    port = measure.free_port()
    command = [str(NODE), str(SOURCE / "server.mjs"), str(port), str(NODE_HOME)]
    env = {"PEER_TOKENS": json.dumps(calls.TOKENS), "NODE_ENV": "production"}
    process = stack.enter_context(measure.child(command, env=env))
    measure.await_port(port, process)
    return Served("TypeScript SDK on Node", port, "/mcp", Meter(database_url, None, process.pid))


def install_node() -> bool:
    """Install the TypeScript SDK and its Node.js as their lock says, unless they stand."""
    lock, stamp = (SOURCE / "package-lock.json").read_bytes(), NODE_HOME / "installed.json"
    if stamp.exists() and stamp.read_bytes() == lock:
        return True
    npm = shutil.which("npm")
    if npm is None:
        return False
    NODE_HOME.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, NODE_HOME / name)
    command = [npm, "ci", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(command, cwd=NODE_HOME, check=True)  # noqa: S603 - npm, as the lock says
    stamp.write_bytes(lock)
    return True


def load(
    served: Served, revision: str, connections: int, first: int, *, quick: bool
) -> dict[str, Any]:
    """Run one load and answer what the generator saw, and what a call cost."""
    given = {
        "port": served.port,
        "path": served.path,
        "bodies": revision,
        "proof": calls.ANSWERED,
        "connections": connections,
        "first": first,
        "most": MOST[connections] // (10 if quick else 1),
        "warm_seconds": 0.2 if quick else 0.5,
        "seconds": 0.5 if quick else 2.0,
    }
    before = cost(served)
    answer = subprocess.run(  # noqa: S603 - our own generator
        [sys.executable, "-m", "bench.load", json.dumps(given)],
        cwd=measure.ROOT,
        check=True,
        stdout=subprocess.PIPE,  # why it failed, it says for all to read
        timeout=60,
    )
    seen: dict[str, Any] = json.loads(answer.stdout)
    if seen["refused"]:
        raise RuntimeError(f"{served.name} refused {seen['refused']}: {seen['first_refusal']}")
    one = costs.between(before, cost(served), seen["answered"])
    seen["cpu_us"] = one.get("tolsey", 0.0) * 1e6
    counts_stores = "redis" in one
    seen["stores_us"] = (one["postgresql"] + one["redis"]) * 1e6 if counts_stores else 0.0
    return seen


def cost(served: Served) -> costs.Reading:
    """Read what a server has cost so far; nothing where the system does not say."""
    return asyncio.run(served.meter.read()) if costs.supported() else {}


def compare(servers: list[Served], *, quick: bool) -> None:
    """Let the servers take turns under every load, and print what came of it."""
    rounds, first = 1 if quick else 3, 0
    for revision in calls.REVISIONS:
        for connections in CONNECTIONS:
            seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for number in range(rounds):
                for served in servers if number % 2 == 0 else reversed(servers):
                    one = load(served, revision, connections, first, quick=quick)
                    first += MOST[connections]
                    seen[served.name].append(one)
                    measure.say(
                        f"{revision}, {connections} connections, round {number + 1} of {rounds}:"
                        f" {served.name}: {one['per_second']:,.0f}/s, p99 {one['p99_ms']:.2f} ms"
                    )
            show(f"{revision}, {connections} connections (medians of {rounds})", seen)


def show(title: str, seen: dict[str, list[dict[str, Any]]]) -> None:
    """Print the medians of one load, with the ratio of each to the SDK on its server, and of ours to all."""
    medians = {
        name: [statistics.median(float(one[key]) for one in found) for key in KEYS]
        for name, found in seen.items()
    }
    ours = [medians[f"tolsey on {server}"][0] for server in SERVERS]

    def of_sdk(name: str) -> str:
        """Say how many times the SDK on the same server one is; nothing of Node's."""
        sdk = medians.get(f"SDK, low level on {name.rpartition(' ')[2]}")
        return f"{medians[name][0] / sdk[0]:.2f}" if sdk else ""

    columns = ["server", "calls/s", "p50 ms", "p99 ms", "CPU us/call", "stores us/call"]
    measure.table(
        title,
        [*columns, "x the SDK", *(f"tolsey on {server} is x" for server in SERVERS)],
        [
            (name, *found, of_sdk(name), *(f"{speed / found[0]:.2f}" for speed in ours))
            for name, found in medians.items()
        ],
    )


def main() -> None:
    given = measure.arguments(__doc__ or "").parse_args()
    measure.machine("uvloop")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        assert redis_url, "REDIS_URL is not set"
        servers = []
        for name in OURS:
            url = stack.enter_context(measure.database(server_url))
            servers.append(start_ours(stack, name, url, redis_url, folder))
        servers += [start_peer(stack, name, kind, url) for name in PEERS for kind in SERVERS]
        node = start_node(stack, url)
        compare([*servers, node] if node else servers, quick=given.quick)


if __name__ == "__main__":
    main()
