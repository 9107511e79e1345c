"""How many turns a second: in memory against other actor libraries, durable against a pool.

Every asker has an actor of its own and asks again when it has its answer. In memory, an ask reads a
number. Pykka's and Thespian's asks are sent from one thread, all askers' before the first answer is
awaited, which is the form that suits them best; Thespian runs in its in-process system. Durable,
a turn raises a number: a row of state, a version that must be what it was, a line in the journal.
The least that does so in groups stands beside it: what is left of its rate is what actors cost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter
from typing import Any

import asyncpg
import pykka
import xoscar
from thespian.actors import Actor as ThespianActor
from thespian.actors import ActorSystem

from bench import measure
from bench.costs import COLUMNS, Spending
from bench.counter import TABLE, Raise, Read, counter, runtime_on
from bench.owner import opened
from tolsey.runtime.registry import Runtime
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.migrate import migrate
from tolsey.storage.runtime.journal import SESSION

ASKERS = (1, 64, 1_000)
POOL = 10

Contestants = dict[str, Callable[[], Awaitable[float]]]


class XoscarCounter(xoscar.Actor):
    """The peer's counter."""

    def __init__(self) -> None:
        self.total = 0

    def read(self) -> int:
        """Tell the number."""
        return self.total


class PykkaCounter(pykka.ThreadingActor):
    """The peer's counter."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def on_receive(self, message: object) -> int:  # noqa: ARG002 - the peer's signature
        """Tell the number."""
        return self.total


class ThespianCounter(ThespianActor):
    """The peer's counter."""

    total = 0

    def receiveMessage(self, message: object, sender: object) -> None:  # noqa: ARG002, N802 - the peer's signature
        """Tell the number."""
        self.send(sender, self.total)


async def together(askers: int, one: Callable[[int], Awaitable[None]], asks: int) -> float:
    """Run all askers at once; answer asks per second."""
    started = perf_counter()
    await asyncio.gather(*(one(n) for n in range(askers)))
    return askers * asks / (perf_counter() - started)


async def ours(runtime: Runtime, askers: int, asks: int) -> float:
    read = Read()

    async def one(n: int) -> None:
        me, ask = counter(f"reader-{n}"), runtime.ask
        for _ in range(asks):
            await ask(me, read)

    return await together(askers, one, asks)


async def by_xoscar(address: str, askers: int, asks: int) -> float:
    found = []
    for n in range(askers):
        await xoscar.create_actor(XoscarCounter, address=address, uid=f"{askers}-{n}")
        # Asked for by name the reference is a local one, ten times faster than the one above.
        found.append(await xoscar.actor_ref(address, f"{askers}-{n}"))

    async def one(n: int) -> None:
        read = found[n].read
        for _ in range(asks):
            await read()

    speed = await together(askers, one, asks)
    for actor in found:
        await xoscar.destroy_actor(actor)
    return speed


async def by_pykka(askers: int, asks: int) -> float:
    actors = [PykkaCounter.start() for _ in range(askers)]
    started = perf_counter()
    for _ in range(asks):
        for future in [actor.ask({}, block=False) for actor in actors]:
            future.get()
    speed = askers * asks / (perf_counter() - started)
    for actor in actors:
        actor.stop()
    return speed


async def by_thespian(askers: int, asks: int) -> float:
    system = ActorSystem("simpleSystemBase")
    actors = [system.createActor(ThespianCounter) for _ in range(askers)]
    started = perf_counter()
    for _ in range(asks):
        for actor in actors:
            system.ask(actor, "read", 5)
    speed = askers * asks / (perf_counter() - started)
    system.shutdown()
    return speed


async def in_memory(runtime: Runtime, address: str, *, quick: bool) -> list[list[object]]:
    rows: list[list[object]] = []
    for askers in ASKERS:
        scale = 10 if quick else 1
        await ours(runtime, askers, 1)
        contestants: Contestants = {
            "tolsey": partial(ours, runtime, askers, 300_000 // scale // askers),
            "xoscar": partial(by_xoscar, address, askers, 100_000 // scale // askers),
            "thespian": partial(by_thespian, askers, max(1, 10_000 // scale // askers)),
            "pykka": partial(by_pykka, askers, max(1, 5_000 // scale // askers)),
        }
        measure.say(f"in memory, {askers:,} askers (asks/s)")
        found = await measure.alternate(contestants, 1 if quick else 3)
        best = max(speed for name, speed in found.items() if name != "tolsey")
        ratio = f"{found['tolsey'] / best:.2f}"
        rows.append([f"{askers:,}", *(found[name] for name in contestants), ratio])
    return rows


async def durable_ours(runtime: Runtime, askers: int, turns: int) -> float:
    more = Raise()

    async def one(n: int) -> None:
        me = counter(f"writer-{n}")
        for _ in range(turns):
            await runtime.ask(me, more)

    return await together(askers, one, turns)


class Pool:
    """What one would write without the runtime: the state in memory, a transaction for each turn."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool
        self.totals: dict[str, int] = {}

    async def open(self, key: str) -> None:
        """Make the rows of a counter."""
        if key not in self.totals:
            await self.pool.execute("INSERT INTO actors VALUES ('pool', $1, 0, 0)", key)
            await self.pool.execute("INSERT INTO bench_counters VALUES ($1, 0)", key)
            self.totals[key] = 0

    async def turn(self, key: str) -> None:
        """Take a turn in a transaction of three statements."""
        version = self.totals[key]
        async with self.pool.acquire() as connection, connection.transaction():
            status = await connection.execute(
                "UPDATE actors SET version = version + 1"
                " WHERE kind = 'pool' AND key = $1 AND version = $2",
                key,
                version,
            )
            if status != "UPDATE 1":
                raise RuntimeError("someone else was faster")
            await connection.execute(
                "INSERT INTO actor_journal (kind, key, version, message_id, message, epoch)"
                " VALUES ('pool', $1, $2, $3, 'Raise', 1)",
                key,
                version + 1,
                f"{key}:{version}",
            )
            await connection.execute(
                "INSERT INTO bench_counters VALUES ($1, $2)"
                " ON CONFLICT (key) DO UPDATE SET total = excluded.total",
                key,
                version + 1,
            )
        self.totals[key] = version + 1

    async def statement(self, key: str) -> None:
        """Take the same turn in one statement, which is its own transaction."""
        version = self.totals[key]
        status = await self.pool.execute(
            """
            WITH moved AS (
              UPDATE actors SET version = version + 1
              WHERE kind = 'pool' AND key = $1 AND version = $2 RETURNING version),
            noted AS (
              INSERT INTO actor_journal (kind, key, version, message_id, message, epoch)
              SELECT 'pool', $1, version, $3, 'Raise', 1 FROM moved)
            INSERT INTO bench_counters SELECT $1, version FROM moved
            ON CONFLICT (key) DO UPDATE SET total = excluded.total
            """,
            key,
            version,
            f"{key}:{version}",
        )
        if status != "INSERT 0 1":
            raise RuntimeError("someone else was faster")
        self.totals[key] = version + 1

    async def run(self, form: str, askers: int, turns: int) -> float:
        """Run all askers at once; answer turns per second."""
        take = self.turn if form == "transaction" else self.statement

        async def one(n: int) -> None:
            key = f"{form}-{n}"
            for _ in range(turns):
                await take(key)

        for n in range(askers):
            await self.open(f"{form}-{n}")
        return await together(askers, one, turns)


class Grouped:
    """The least that a group commit is: one fenced statement for all that wait, and nothing else.

    No actors, no mailboxes, nothing that is repeated, split or read back.
    """

    STATEMENT = """
        WITH w AS MATERIALIZED (
          SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[], $4::text[])
          w(key, slot, version, message_id)),
        good AS MATERIALIZED (
          SELECT s.slot FROM slot_epochs s WHERE s.slot = ANY (ARRAY(SELECT slot FROM w))
          AND s.epoch = $5 ORDER BY s.slot FOR SHARE),
        moved AS (
          UPDATE actors a SET version = a.version + 1 FROM w
          WHERE a.kind = 'grouped' AND a.key = w.key AND a.version = w.version
          AND w.slot IN (SELECT slot FROM good) RETURNING a.key, a.version, w.message_id),
        noted AS (
          INSERT INTO actor_journal (kind, key, version, message_id, message, epoch)
          SELECT 'grouped', key, version, message_id, 'Raise', $5 FROM moved),
        kept AS (
          INSERT INTO bench_counters SELECT key, version FROM moved
          ON CONFLICT (key) DO UPDATE SET total = excluded.total)
        SELECT count(*) FROM moved
        """

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.connection = connection
        self.totals: dict[str, int] = {}
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []
        self.writing: asyncio.Task[None] | None = None

    async def open(self, key: str) -> None:
        """Make the row of a counter."""
        if not self.totals:
            await self.connection.execute(SESSION)
            self.epoch = await self.connection.fetchval("SELECT max(epoch) FROM slot_epochs")
            self.statement = await self.connection.prepare(self.STATEMENT)
        if key not in self.totals:
            await self.connection.execute(
                "INSERT INTO actors VALUES ('grouped', $1, $2, 0)", key, slot_of(key)
            )
            self.totals[key] = 0

    async def turn(self, key: str) -> None:
        """Take a turn with whatever else waits."""
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((key, future))
        if self.writing is None:
            self.writing = asyncio.create_task(self._write())
        await future

    async def _write(self) -> None:
        while self.waiting:
            taken, self.waiting = self.waiting, []
            keys = [key for key, _ in taken]
            versions = [self.totals[key] for key in keys]
            ids = [f"{key}:{self.totals[key]}" for key in keys]
            moved = await self.statement.fetchval(
                keys, [slot_of(key) for key in keys], versions, ids, self.epoch
            )
            if moved != len(keys):
                raise RuntimeError("someone else was faster")
            for key, future in taken:
                self.totals[key] += 1
                future.set_result(None)
        self.writing = None

    async def run(self, askers: int, turns: int) -> float:
        """Run all askers at once; answer turns per second."""

        async def one(n: int) -> None:
            for _ in range(turns):
                await self.turn(f"grouped-{n}")

        for n in range(askers):
            await self.open(f"grouped-{n}")
        return await together(askers, one, turns)


async def durable(
    runtime: Runtime, pool: Pool, grouped: Grouped, url: str, *, quick: bool
) -> tuple[list[list[object]], list[list[object]]]:
    rows: list[list[object]] = []
    costs: list[list[object]] = []
    for askers in ASKERS:
        scale = 10 if quick else 1
        many = (1_500 if askers == 1 else 40_000) // scale
        few = (1_500 if askers == 1 else 8_000) // scale
        each = {
            "tolsey": (partial(durable_ours, runtime, askers), max(1, many // askers)),
            "grouped": (partial(grouped.run, askers), max(1, many // askers)),
            "transaction": (partial(pool.run, "transaction", askers), max(1, few // askers)),
            "statement": (partial(pool.run, "statement", askers), max(1, few // askers)),
        }
        spending = Spending(url)

        async def once(
            name: str, askers: int = askers, each: Any = each, spending: Spending = spending
        ) -> float:
            run, turns = each[name]
            return await spending.of(name, askers * turns, run(turns))

        contestants: Contestants = {name: partial(once, name) for name in each}
        for run, _ in each.values():
            await run(1)
        measure.say(f"durable, {askers:,} askers (turns/s)")
        found = await measure.alternate(contestants, 1 if quick else 3)
        costs += spending.lines(f"{askers:,}", list(each))
        rows.append(
            [
                f"{askers:,}",
                *(found[name] for name in contestants),
                *(f"{found['tolsey'] / found[name]:.2f}" for name in list(each)[1:]),
            ]
        )
    return rows, costs


async def compare(url: str, *, quick: bool) -> None:
    async with AsyncExitStack() as stack:
        await migrate(url)
        database, journal = await opened(stack, url)
        await database.execute(TABLE)
        runtime = await stack.enter_async_context(await runtime_on(database, journal))
        address = f"127.0.0.1:{measure.free_port()}"
        await stack.enter_async_context(
            await xoscar.create_actor_pool(address=address, n_process=0)
        )
        connections = await stack.enter_async_context(
            asyncpg.create_pool(url, min_size=POOL, max_size=POOL)
        )
        asks = await in_memory(runtime, address, quick=quick)
        alone = await asyncpg.connect(url)
        stack.push_async_callback(alone.close)
        turns, costs = await durable(runtime, Pool(connections), Grouped(alone), url, quick=quick)
    measure.table(
        "In-memory asks per second (medians; ratio to the fastest peer)",
        ["askers", "tolsey", "xoscar", "thespian", "pykka", "ratio"],
        asks,
    )
    measure.table(
        "Durable turns per second (medians; one fenced statement for all that wait, without actors; a"
        f" pool of {POOL} connections with a transaction of three statements, or with one statement,"
        " for each turn; ratios to them)",
        [
            *("askers", "tolsey", "grouped", "transaction", "statement"),
            *("to grouped", "to transaction", "to statement"),
        ],
        turns,
    )
    measure.table("Processor time of a durable turn, in ms (medians)", ["askers", *COLUMNS], costs)


if __name__ == "__main__":
    measure.on_a_database(__doc__, compare)
