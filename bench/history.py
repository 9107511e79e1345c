"""How fast what a shop sold before it was connected is imported, and whether memory grows with the orders.

Ours is the service's own import: the platform's bulk export over HTTP from a sandbox shop in a process of
its own, each order read as a delivery of it is, written with its refunds, where its buyer came from and all
kept sums, in commits that hold the place in the export too. The peer (`bench/peers/bulk_script.py`) is the
script that a developer writes: orjson and COPY into one table, no sums, no place, nobody else writing.
Seconds are from the first byte of the file on: how long the sandbox makes the export says nothing of either.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter, process_time
from typing import Any

from bench import measure
from bench.peers import bulk_script
from bench.peers.shop import CLIENT_ID, CLIENT_SECRET, DOMAIN
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.connection.messages import Connect
from tolsey.actors.store.effects import StoreEffects
from tolsey.actors.store.imports.effects import OrderImportCalls
from tolsey.actors.store.messages import store
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES
from tolsey.storage.commerce import connections, order_imports
from tolsey.storage.commerce.stores import seal_salt
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrate
from tolsey.storage.records.commerce.connection import ShopProfile
from tolsey.storage.records.commerce.imports import ImportState
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault

STORE = "store_bench"
SIZES = {"quick": (2_000,), "small": (10_000, 100_000), "large": (10_000, 100_000, 1_000_000)}
MEGABYTE = 1024 * 1024


async def ours(url: str, database_url: str) -> dict[str, Any]:
    """Connect a store and wait until the import that follows has ended."""
    vault = Vault.from_keys("t1:" + "A" * 43)
    running: list[Runtime] = []
    database = Database(database_url)
    await database.open()

    async def ask(to: ActorId, message: Message[Any]) -> Any:
        return await running[0].ask(to, message)

    async def nobody(_: str) -> None:
        pass

    await database.execute("INSERT INTO organizations (id, name) VALUES ('org', 'o')")
    await database.execute(
        "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
        " VALUES ($1, 'org', 's', $2, now())",
        STORE,
        seal_salt(vault, STORE, b"s" * 32),
    )
    journal = Journal(database)
    async with ShopifyAdmin(f"{url}/{{shop}}") as admin:
        reach: dict[str, Any] = {
            "ask": ask,
            "platform": admin,
            "database": database,
            "vault": vault,
            "clock": partial(datetime.now, UTC),
        }
        effects = StoreEffects(**reach, events_url="http://127.0.0.1/events", invalidate=nobody)
        calls = effects.handlers() | OrderImportCalls(**reach).handlers()
        async with Runtime(
            [StoreActor(database)],
            journal,
            Outbox(database),
            partial(slots.versions, database),
            epochs=await slots.claim(database, "bench"),
            handlers=calls,
        ) as runtime:
            running.append(runtime)
            grant = await admin.exchange(DOMAIN, CLIENT_ID, CLIENT_SECRET)
            at = datetime.now(UTC)
            connect = Connect(
                at=at,
                user_id="usr",
                shop=ShopProfile(store_id=STORE, shop_domain=DOMAIN, facts_at=at, currency="USD"),
                client_id=CLIENT_ID,
                access_token=connections.seal_token(vault, STORE, grant.access_token),
                client_secret=connections.seal_secret(vault, STORE, CLIENT_SECRET),
                scopes=ALL_SCOPES,
                expires_at=at + timedelta(days=1),
            )
            before = measure.rss_bytes()
            await runtime.ask(store(STORE), connect)
            found = await _imported(database) | {"before": before}
    await journal.close()
    await database.close()
    return found


async def _imported(database: Database) -> dict[str, Any]:
    """Time an import from its first orders to its end, less those that were there when it was looked at."""
    begun, first = 0.0, 0
    while True:
        known = await order_imports.known(database, STORE)
        last = known and known.order_import
        if last and last.orders and not begun:
            begun, first = perf_counter(), last.orders
        if last and last.state is not ImportState.RUNNING:
            seconds = perf_counter() - begun
            if last.state is not ImportState.DONE:
                raise RuntimeError(f"the import ended as {last.state}: {last.code}")
            return {"orders": last.orders - first, "seconds": seconds}
        await asyncio.sleep(0.02)


async def script(url: str, database_url: str) -> dict[str, Any]:
    """Run the script; its own seconds begin when the file is there."""
    before = measure.rss_bytes()
    orders, seconds = await bulk_script.bring(
        f"{url}/{DOMAIN}", CLIENT_ID, CLIENT_SECRET, database_url
    )
    return {"orders": orders, "seconds": seconds, "before": before}


CONTESTANTS = {"tolsey": ours, "script": script}


def in_child(which: str, url: str, database_url: str, loop: str) -> dict[str, Any]:
    """Run one in a fresh process, whose memory is its own."""
    command = [sys.executable, "-m", "bench.history", "--loop", loop, "--measure", which]
    answer = subprocess.run(  # noqa: S603 - this file
        [*command, "--url", url, "--database", database_url],
        cwd=measure.ROOT,
        check=True,
        stdout=subprocess.PIPE,
        timeout=3_600,
    )
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def compare(loop: str, size: str) -> None:
    """Import shops of each size by both, in turn, each into an empty database."""
    rows = []
    with measure.servers() as (server_url, _):
        for orders in SIZES[size]:
            with ExitStack() as stack:
                port = measure.free_port()
                measure.say(f"opening a shop with {orders:,} orders")
                command = [sys.executable, "-m", "bench.peers.shop", str(port), str(orders)]
                process = stack.enter_context(measure.child(command))
                measure.await_port(port, process, seconds=900)
                for which in CONTESTANTS:
                    with measure.database(server_url) as database_url:
                        measure.in_thread(migrate(database_url))
                        url = f"http://127.0.0.1:{port}"
                        found = in_child(which, url, database_url, loop)
                    rate = found["orders"] / found["seconds"]
                    peak, grew = found["peak"], found["peak"] - found["before"]
                    measure.say(
                        f"{which}: {found['orders']:,} orders in {found['seconds']:.1f} s,"
                        f" {peak // MEGABYTE} MB"
                    )
                    cpu = found["cpu"] / found["orders"] * 1_000_000
                    sizes = (peak // MEGABYTE, grew // MEGABYTE)
                    rows.append((f"{which}, {orders:,}", rate, cpu, *sizes))
    measure.machine(loop)
    columns = (
        "what, orders of the shop",
        "orders a second",
        "CPU us each",
        "peak MB",
        "grew by MB",
    )
    measure.table("Earlier orders imported", columns, rows)


def main() -> None:
    """Compare, or be one of those that are compared."""
    parser = measure.arguments(str(__doc__))
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--measure", choices=tuple(CONTESTANTS))
    parser.add_argument("--url")
    parser.add_argument("--database")
    given = parser.parse_args()
    if given.measure is None:
        compare(given.loop, "quick" if given.quick else given.size)
        return

    async def one() -> None:
        found = await CONTESTANTS[given.measure](given.url, given.database)
        print(json.dumps({**found, "peak": measure.peak_rss_bytes(), "cpu": process_time()}))

    measure.run(one, given.loop)


if __name__ == "__main__":
    main()
