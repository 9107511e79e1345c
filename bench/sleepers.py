"""What an awake but idle actor costs in memory, and how fast sleepers wake from disk.

Memory is counted twice: as the growth of the process, and as the sizes of the objects of one actor.
An actor is hot (its state is an object) or cold (its state is bytes, after half a minute without a
message); its key is an id as long as the service's own. Each library is measured in a process of its
own. Waking reads a version and a row of state, for ours many actors at once, else one query each.
"""

import asyncio
import gc
import json
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any

import asyncpg
import xoscar

from bench import measure
from bench.counter import TABLE, Counter, Read, counter, runtime_on
from bench.owner import opened
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.state import StoreState
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId
from tolsey.runtime.registry import Runtime
from tolsey.runtime.turns.mailbox import Cell
from tolsey.storage.migrate import migrate
from tolsey.storage.records.commerce.connection import Connection, ShopProfile

ASKERS = 1_000
POOL = 10


class XoscarCounter(xoscar.Actor):
    """The peer's counter: the same state as ours."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.total = 0


async def counters(stack: AsyncExitStack, url: str) -> Runtime:
    await migrate(url)
    database, journal = await opened(stack, url)
    await database.execute(TABLE)
    return await stack.enter_async_context(await runtime_on(database, journal))


def rss_bytes() -> int:
    gc.collect()
    return measure.rss_bytes()


async def ours(url: str, actors: int) -> dict[str, float]:
    """Measure our actors, hot and then cold."""
    async with AsyncExitStack() as stack:
        runtime = await counters(stack, url)
        await runtime.admin.wake(counter("first"))
        before = rss_bytes()
        for start in range(0, actors, 1_000):
            many = range(start, min(start + 1_000, actors))
            await asyncio.gather(*(runtime.admin.wake(counter(new_id("store"))) for _ in many))
        hot = rss_bytes() - before
        cells = runtime.scheduler.cells
        table = sys.getsizeof(cells) / len(cells)
        sizes = {"hot_sizes": table + mean(cells.values()), "states": mean_state(cells.values())}
        return {"hot": hot / actors, **sizes}


def of_stores(actors: int, *, cold: bool) -> dict[str, float]:
    """Measure connected stores, whose state is worth keeping as bytes when they are idle."""
    kind = Counter(None)  # type: ignore[arg-type]  # no turn is taken
    cells: dict[ActorId, Cell] = {}
    before = rss_bytes()
    for _ in range(actors):
        id = ActorId("store", new_id("store"))
        cell = cells[id] = Cell(id, kind)
        cell.wake(connected(id.key), 1)
        if cold:
            cell.cool()
            assert not cell.hot
    return {"hot": (rss_bytes() - before) / actors}


def connected(store_id: str) -> StoreState:
    """Make the state of a store as its connection leaves it: nothing of it is shared."""
    now = datetime.now(UTC)
    shop = f"{store_id[-12:]}.myshopify.com"
    connection = Connection(
        store_id=store_id,
        shop_domain=shop,
        status="active",
        connected_at=now,
        client_id=secrets.token_hex(16),
        access_token=f"v1.k1.{secrets.token_urlsafe(70)}",
        token_expires_at=now + timedelta(days=1),
        client_secret=f"v1.k1.{secrets.token_urlsafe(70)}",
        scopes=tuple(f"read_{topic.split('/')[0]}_{store_id[-4:]}" for topic in TOPICS),
        scopes_at=now,
    )
    profile = ShopProfile(
        store_id=store_id,
        shop_domain=shop,
        facts_at=now,
        name=f"The shop {store_id[-6:]}",
        currency="USD",
        primary_domain=shop,
        subscriptions=json.dumps(dict.fromkeys(TOPICS, "created")),
        subscribed_at=now,
    )
    return StoreState(
        store_id=store_id, organization_id=new_id("org"), connection=connection, shop=profile
    )


def mean(cells: Any) -> float:
    """Add up what belongs to one actor alone, on average."""
    found = [size(cell) for cell in cells]
    return sum(found) / len(found)


def size(cell: Cell) -> int:
    owned = [cell, cell.id, cell.id.key, cell.version, cell.used_at]
    if cell.cold is not None:
        owned.append(cell.cold)
    if cell.state is not None:
        owned.append(cell.state)
    return sum(sys.getsizeof(one) for one in owned if one != 0)


def mean_state(cells: Any) -> float:
    found = [sys.getsizeof(cell.state) for cell in cells]
    return sum(found) / len(found)


async def by_xoscar(actors: int) -> dict[str, float]:
    """Measure the peer's actors."""
    address = f"127.0.0.1:{measure.free_port()}"
    async with await xoscar.create_actor_pool(address=address, n_process=0):
        await xoscar.create_actor(XoscarCounter, "first", address=address, uid="first")
        before = rss_bytes()
        for _ in range(actors):
            key = new_id("store")
            await xoscar.create_actor(XoscarCounter, key, address=address, uid=key)
        return {"hot": (rss_bytes() - before) / actors}


def in_child(which: str, actors: int, url: str, loop: str) -> dict[str, float]:
    """Measure one library in a fresh process."""
    measure.say(f"{actors:,} actors of {which}")
    answer = subprocess.run(  # noqa: S603 - this file
        [
            sys.executable,
            "-m",
            "bench.sleepers",
            "--loop",
            loop,
            "--measure",
            which,
            "--actors",
            str(actors),
            "--url",
            url,
        ],
        cwd=measure.ROOT,
        check=True,
        stdout=subprocess.PIPE,
        timeout=120,
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


async def wake_ups(url: str, *, quick: bool) -> None:
    """Compare wake-ups that are read together with one query each."""
    sleepers = 5_000 if quick else 50_000
    async with AsyncExitStack() as stack:
        runtime = await counters(stack, url)
        pool = await stack.enter_async_context(
            asyncpg.create_pool(url, min_size=POOL, max_size=POOL)
        )
        keys = [new_id("store") for _ in range(sleepers)]
        await pool.execute(
            "INSERT INTO bench_counters SELECT key, 7 FROM unnest($1::text[]) key", keys
        )
        await pool.execute(
            "INSERT INTO actors SELECT 'counter', key, 0, 1 FROM unnest($1::text[]) key", keys
        )
        await pool.execute("ANALYZE bench_counters, actors")
        contestants: dict[str, Callable[[], Awaitable[float]]] = {
            "tolsey": partial(coalesced, runtime, keys),
            "query": partial(one_by_one, pool, keys[: sleepers // 5]),
        }
        measure.say(f"waking {sleepers:,} actors (wake-ups/s)")
        found = await measure.alternate(contestants, 1 if quick else 5)
    measure.table(
        f"Wake-ups per second from disk, {ASKERS:,} askers (medians; one query for each wake-up runs"
        f" on a pool of {POOL})",
        ["tolsey", "one query each", "ratio"],
        [(found["tolsey"], found["query"], f"{found['tolsey'] / found['query']:.2f}")],
    )


async def coalesced(runtime: Runtime, keys: list[str]) -> float:
    """Ask sleeping actors, then put them back to sleep."""
    read = Read()

    async def asker(n: int) -> None:
        for key in keys[n::ASKERS]:
            assert await runtime.ask(counter(key), read) == 7

    started = perf_counter()
    await asyncio.gather(*(asker(n) for n in range(ASKERS)))
    speed = len(keys) / (perf_counter() - started)
    for cell in list(runtime.scheduler.cells.values()):
        runtime.scheduler.passivate(cell)
    return speed


async def one_by_one(pool: "asyncpg.Pool[asyncpg.Record]", keys: list[str]) -> float:
    """Read each actor with a query of its own."""

    async def asker(n: int) -> None:
        for key in keys[n::ASKERS]:
            row = await pool.fetchrow(
                "SELECT c.total, a.version FROM bench_counters c"
                " JOIN actors a ON a.kind = 'counter' AND a.key = c.key WHERE c.key = $1",
                key,
            )
            assert row is not None

    started = perf_counter()
    await asyncio.gather(*(asker(n) for n in range(ASKERS)))
    return len(keys) / (perf_counter() - started)


def compare(server_url: str, loop: str, *, quick: bool) -> None:
    actors = 10_000 if quick else 100_000
    with measure.database(server_url) as url:
        mine = in_child("tolsey", actors, url, loop)
    peer = in_child("xoscar", actors, "", loop)
    measure.table(
        f"Bytes per awake idle actor, {actors:,} actors (the state of ours takes"
        f" {mine['states']:.0f} of them)",
        ["", "process grew by", "sizes of objects", "xoscar / this"],
        [
            ("tolsey", mine["hot"], mine["hot_sizes"], f"{peer['hot'] / mine['hot']:.2f}"),
            ("xoscar", peer["hot"], "", "1.00"),
        ],
    )
    stores = actors // 5
    hot, cold = (in_child(which, stores, "", loop)["hot"] for which in ("stores", "cold-stores"))
    measure.table(
        f"Bytes per connected store, {stores:,} stores",
        ["", "process grew by", "hot / this"],
        [("hot", hot, "1.00"), ("cold", cold, f"{hot / cold:.2f}")],
    )
    with measure.database(server_url) as url:
        measure.run(partial(wake_ups, url, quick=quick), loop)


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--measure", choices=("tolsey", "xoscar", "stores", "cold-stores"))
    parser.add_argument("--actors", type=int, default=0)
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    if given.measure is None:
        measure.machine(given.loop)
        with measure.servers() as (server_url, _):
            compare(server_url, given.loop, quick=given.quick)
        return

    async def measured() -> None:
        if given.measure == "xoscar":
            found = await by_xoscar(given.actors)
        elif given.measure in {"stores", "cold-stores"}:
            found = of_stores(given.actors, cold=given.measure == "cold-stores")
        else:
            found = await ours(given.url, given.actors)
        print(json.dumps(found))

    measure.run(measured, given.loop)


if __name__ == "__main__":
    main()
