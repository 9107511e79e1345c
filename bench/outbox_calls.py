"""Durable calls a second, from a decision to its result, beside procrastinate and DBOS.

A caller decides that something is asked of the outside and waits for what came of it. With all three the
decision is on disk before the call is made, and its result before the caller hears of it: the state of
an actor, the row and counter that a job's task updates, the recorded steps of a workflow. The call
itself takes no time. All run in this process, on one PostgreSQL. Two bare statements for each call,
without actors, jobs or retries, stand beside them: what nobody with that durability is faster than.
"""

import asyncio
import itertools
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, ClassVar

import asyncpg
import structlog
from dbos import DBOS
from procrastinate import App, PsycopgConnector

from bench import measure
from bench.asking import collect_seldom
from bench.costs import Meter
from bench.counter import TABLE, Counter, CounterRow
from bench.owner import opened, owning
from tolsey.runtime.actor import handles
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.runtime.messages import ActorId, Call, LaneName, Message
from tolsey.storage.migrate import migrate

KIND = "caller"
CALLERS = (1, 32, 256)
SECONDS = 5.0
SLOW = 1_000
JOBS_AT_ONCE = 64
"""Of procrastinate's worker; as many as our lane of platforms has places."""

One = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Decide(Message[int]):
    """Have the outside asked for the number after this one."""


@dataclass(frozen=True, slots=True)
class AskNext(Call["Answered"]):
    """Ask for the number after one."""

    lane: ClassVar[LaneName] = "platform"

    number: int


@dataclass(frozen=True, slots=True)
class DecideSlowly(Message[None]):
    """Have the outside asked for something that it does not answer."""


@dataclass(frozen=True, slots=True)
class AskForEver(Call[None]):
    """Ask what is not answered while the bench runs."""

    lane: ClassVar[LaneName] = "platform"


@dataclass(frozen=True, slots=True)
class Answered(Message[None]):
    """The outside answered."""

    number: int


async def ask_next(call: AskNext) -> Answered:
    return Answered(call.number + 1)


async def ask_for_ever(call: AskForEver) -> None:
    del call
    await asyncio.Event().wait()


class Caller(Counter):
    """Counts by what the outside says."""

    kind = KIND

    @handles(Decide)
    def decide(self, state: CounterRow, message: Decide) -> Decision[CounterRow, int]:  # noqa: ARG002 - a turn's shape
        """Ask, and let the asker wait."""
        name = f"{state.key}:{state.total}"
        return Decision(state, Parked(name), effects=[Perform(AskNext(state.total))])

    @handles(DecideSlowly)
    def decide_slowly(
        self,
        state: CounterRow,
        message: DecideSlowly,  # noqa: ARG002 - as above
    ) -> Decision[CounterRow, None]:
        """Ask, and let nobody wait."""
        return Decision(state, None, effects=[Perform(AskForEver())])

    @handles(Answered)
    def answered(self, state: CounterRow, message: Answered) -> Decision[CounterRow, None]:
        """Keep what came, and answer who waits."""
        after = replace(state, total=message.number)
        return Decision(after, None, resolve={f"{state.key}:{state.total}": message.number})


@asynccontextmanager
async def tolsey(url: str, slow: int = 0) -> AsyncIterator[One]:
    """Let actors decide, the dispatcher call, and results come back as messages.

    Another tenant has `slow` calls under way that nobody answers.
    """
    async with AsyncExitStack() as stack:
        database, journal = await opened(stack, url)
        runtime = await stack.enter_async_context(
            await owning(
                [Caller(database)],
                database,
                journal,
                handlers={AskNext: ask_next, AskForEver: ask_for_ever},
                grace_seconds=0.5,
            )
        )
        hog = ActorId(KIND, "hog")
        for _ in range(slow):
            await runtime.ask(hog, DecideSlowly())
        yield lambda n: runtime.ask(ActorId(KIND, f"caller_{n}"), Decide())


PEER = (
    "CREATE TABLE peer_counters (key text PRIMARY KEY, total bigint NOT NULL);"
    " CREATE TABLE bare_calls (id bigint PRIMARY KEY)"
)


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[One]:
    """Write the decision down, then its result in its place; each is on disk before what follows."""
    calls = itertools.count()
    pool = await asyncpg.create_pool(url, min_size=16, max_size=16)

    async def one(n: int) -> None:
        call = next(calls)
        async with pool.acquire() as connection:
            await connection.execute("INSERT INTO bare_calls VALUES ($1)", call)
            await connection.execute(
                "WITH done AS (DELETE FROM bare_calls WHERE id = $2)"
                " INSERT INTO peer_counters VALUES ($1, 1)"
                " ON CONFLICT (key) DO UPDATE SET total = peer_counters.total + 1",
                *(f"caller_{n}", call),
            )

    yield one
    await pool.close()


@asynccontextmanager
async def procrastinate(url: str) -> AsyncIterator[One]:
    """Defer a job for each call; its task keeps the result in a row of the application's own."""
    jobs, waiting = itertools.count(), dict[int, asyncio.Future[None]]()
    app = App(connector=PsycopgConnector(conninfo=url, min_size=8, max_size=16))
    pool = await asyncpg.create_pool(url, min_size=16, max_size=16)

    @app.task(name="ask_next")
    async def ask_next(n: int, job: int) -> None:
        await pool.execute(
            "INSERT INTO peer_counters VALUES ($1, 1)"
            " ON CONFLICT (key) DO UPDATE SET total = peer_counters.total + 1",
            f"caller_{n}",
        )
        waiting.pop(job).set_result(None)

    async def one(n: int) -> None:
        job = next(jobs)
        answered = waiting[job] = asyncio.get_running_loop().create_future()
        await ask_next.defer_async(n=n, job=job)
        await answered

    async with app.open_async():
        worker = asyncio.ensure_future(
            app.run_worker_async(
                concurrency=JOBS_AT_ONCE, install_signal_handlers=False, delete_jobs="successful"
            )
        )
        yield one
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    await pool.close()


@DBOS.step()
async def step_next(n: int) -> int:
    return n + 1


@DBOS.workflow()
async def workflow(n: int) -> int:
    found: int = await step_next(n)
    return found


@asynccontextmanager
async def dbos(url: str) -> AsyncIterator[One]:
    """Run a workflow of one step for each call; the step's result and the workflow's are recorded."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url.replace("postgres://", "postgresql://"),
            "sys_db_pool_size": 16,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()

    async def one(n: int) -> None:
        handle = await DBOS.start_workflow_async(workflow, n)
        await handle.get_result()

    try:
        yield one
    finally:
        DBOS.destroy()


WAYS: dict[str, Callable[[str], Any]] = {
    "tolsey": tolsey,
    "procrastinate": procrastinate,
    "DBOS": dbos,
    "bare statements": bare,
}


@dataclass
class Figures:
    """What one round showed, for each call."""

    rate: float
    p99: float
    own_ms: float
    postgresql_ms: float
    rows: float


async def rows_written(url: str) -> int:
    """Count the rows that were ever written; whoever wrote them has gone, so all are counted."""
    connection = await asyncpg.connect(url)
    try:
        return int(
            await connection.fetchval(
                "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
                " WHERE relname <> 'slot_epochs'"  # which a process writes once, when it starts
            )
        )
    finally:
        await connection.close()


async def round_of(url: str, way: Callable[[str], Any], callers: int, seconds: float) -> Figures:
    """Let callers ask one after another, each for itself."""
    meter, before = Meter(url, None, os.getpid()), await rows_written(url)
    waits: list[float] = []

    async with way(url) as one:
        for n in range(8):  # what is made at first is not what is measured
            await one(n)

        async def caller(n: int) -> None:
            while (asked := perf_counter()) < began + seconds:
                await one(n)
                waits.append(perf_counter() - asked)

        costs, cpu, began = await meter.read(), process_time(), perf_counter()
        await asyncio.gather(*(caller(n) for n in range(callers)))
        took, own, after = perf_counter() - began, process_time() - cpu, await meter.read()
    return Figures(
        len(waits) / took,
        quantiles(waits, n=100)[98] * 1000,
        own / len(waits) * 1000,
        (after["postgresql"] - costs["postgresql"]) / len(waits) * 1000,
        (await rows_written(url) - before) / (len(waits) + 8),
    )


async def forget(url: str) -> None:
    """Take away what was never answered."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DELETE FROM outbox")
    finally:
        await connection.close()


async def compare(url: str, *, quick: bool) -> None:
    collect_seldom()
    await migrate(url)
    connection = await asyncpg.connect(url)
    await connection.execute(f"{TABLE}; {PEER}")
    await connection.close()
    async with App(connector=PsycopgConnector(conninfo=url)).open_async() as app:
        await app.schema_manager.apply_schema_async()
    table: list[list[object]] = []
    for callers in CALLERS:
        shown: Mapping[str, list[Figures]] = defaultdict(list)

        async def once(name: str, callers: int = callers, shown: Any = shown) -> float:
            figures = await round_of(url, WAYS[name], callers, 0.5 if quick else SECONDS)
            shown[name].append(figures)
            return figures.rate

        measure.say(f"{callers:,} callers (calls/s)")
        ways = {name: partial(once, name) for name in WAYS}
        rates = await measure.alternate(ways, 1 if quick else 3)
        for name in WAYS:
            middle = [
                median(getattr(one, field) for one in shown[name])
                for field in ("p99", "own_ms", "postgresql_ms", "rows")
            ]
            times = f"{rates['tolsey'] / rates[name]:.1f}"
            table.append([f"{callers:,} {name}", rates[name], *middle, times])
    p99s: dict[int, list[float]] = {0: [], SLOW: []}
    for _ in range(1 if quick else 3):
        for slow, found in p99s.items():
            figures = await round_of(url, partial(tolsey, slow=slow), 1, 0.5 if quick else SECONDS)
            found.append(figures.p99)
            await forget(url)
    alone, beside = (median(p99s[slow]) for slow in (0, SLOW))
    measure.table(
        f"p99 in ms of one tenant's calls, alone and while another has {SLOW:,} that are not answered",
        ["alone", "beside", "times"],
        [[alone, beside, beside / alone]],
    )
    measure.table(
        "Calls per second from decision to result (medians); processor time and rows for each call",
        ["callers", "calls/s", "p99 ms", "our ms", "PostgreSQL ms", "rows", "tolsey is times"],
        table,
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    measure.on_a_database(__doc__, compare)
