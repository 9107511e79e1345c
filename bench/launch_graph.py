"""What dispatching a step of a launch costs: the playbook's 29 steps with nothing in them, beside DBOS and Prefect.

All run the same graph on one PostgreSQL: a step begins once all that it depends on is done, and its result is kept before
what follows it begins. Here each step is a call of the store's outbox, and each that a person does a decision of theirs; in
DBOS each is a step of a workflow, in Prefect a task of a flow, whose server is a process of its own. Prefect wants older
websockets than the other peers are locked to, so it runs in an environment of its own and is left out where that is not there.
Its server also wants the extension pg_trgm, which the embedded PostgreSQL has not: `PREFECT_DATABASE_URL` names a server that
has. What a step does takes no time, so what is left is dispatch.
"""

import asyncio
import itertools
import logging
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import asyncpg
import orjson
import structlog
from dbos import DBOS

from bench import measure
from bench.owner import opened, owning
from tolsey.actors.mail import TellPeople
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ClaimPlace,
    DecideCheckpoint,
    PlaceClaimed,
    StepFinished,
    TakeStep,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.storage.migrate import migrate

AT_ONCE = (1, 16)
ROUNDS = 5
HUMAN = frozenset(id for id, one in PLAYBOOK.milestones.items() if one.is_human)
NUMBERS = itertools.count()
EMPTY = '{"missingScopes": {}, "shop": {}, "drafted": [], "kept": []}'

Launch = Callable[[int], Awaitable[None]]
Ask = Callable[[int], Awaitable[float]]
PREFECT = measure.ROOT / ".venv-bench-prefect" / "bin" / "python"


class Following:
    """Marks what a person does as soon as it is its turn, and says when a launch is done."""

    def __init__(self) -> None:
        self.done = dict[str, set[str]]()
        self.ended = dict[str, asyncio.Event]()

    def begin(self, store_id: str) -> asyncio.Event:
        """Follow a launch."""
        self.done[store_id] = set()
        self.ended[store_id] = asyncio.Event()
        return self.ended[store_id]

    def due(self, store_id: str, milestone: str) -> list[str]:
        """Note that a milestone is done, and name what people may do by now."""
        done = self.done[store_id]
        done.add(milestone)
        if len(done) == len(PLAYBOOK.milestones):
            self.ended[store_id].set()
        return [
            one
            for one in PLAYBOOK.dependants[milestone]
            if one in HUMAN and one not in done and done >= {*PLAYBOOK.milestones[one].depends_on}
        ]


@asynccontextmanager
async def tolsey(url: str) -> AsyncIterator[Launch]:
    """Run launches as the store's actor does, with steps that find everything as it should be."""
    follows = Following()
    async with AsyncExitStack() as stack:
        database, journal = await opened(stack, url)
        await migrate(url)
        deciding = set[asyncio.Task[None]]()

        async def decide(store_id: str, milestone: str) -> None:
            message = DecideCheckpoint(
                milestone=milestone, action="done", user_id="u", note=None, at=datetime.now(UTC)
            )
            # The step before it is told to us before it is committed.
            for _ in range(200):
                try:
                    await runtime.ask(store(store_id), message)
                    break
                except Refusal:
                    await asyncio.sleep(0.002)
            after(store_id, milestone)

        def after(store_id: str, milestone: str) -> None:
            for one in follows.due(store_id, milestone):
                task = asyncio.create_task(decide(store_id, one))
                deciding.add(task)
                task.add_done_callback(deciding.discard)

        async def step(call: TakeStep) -> StepFinished:
            after(call.store_id, call.of.milestone)
            return StepFinished(
                of=call.of,
                result=EMPTY,
                facts=(),
                modules=(),
                draft_hash=None,
                lacks_topics=False,
                at=datetime.now(UTC),
            )

        async def claim(call: ClaimPlace) -> PlaceClaimed:
            at = datetime.now(UTC)
            return PlaceClaimed(launch_id=call.launch_id, until=at + timedelta(hours=1), at=at)

        async def nobody(call: TellPeople) -> None:
            del call

        handlers = {TakeStep: step, ClaimPlace: claim, TellPeople: nobody}
        actors = [StoreActor(database), OrganizationActor(database)]
        runtime = await owning(actors, database, journal, handlers=handlers)
        await stack.enter_async_context(runtime)
        await database.execute(
            "INSERT INTO organizations (id, name) VALUES ('org', 'o') ON CONFLICT DO NOTHING"
        )

        async def launch(n: int) -> None:
            del n
            store_id = f"store_{next(NUMBERS)}"
            await database.execute(
                "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
                " VALUES ($1, 'org', 's', '', now())",
                store_id,
            )
            ended = follows.begin(store_id)
            begin = BeginLaunch(
                launch_id=f"launch_{store_id}",
                user_id="u",
                digest="d",
                modules=(),
                facts=(),
                at=datetime.now(UTC),
            )
            await runtime.ask(store(store_id), begin)
            async with asyncio.timeout(120):
                await ended.wait()

        yield launch


@DBOS.step()
async def nothing(milestone: str) -> str:
    return milestone


@DBOS.workflow()
async def whole_graph(n: int) -> int:
    """Begin each step once all before it are done."""
    tasks = dict[str, asyncio.Task[None]]()

    async def one(id: str) -> None:
        for before in PLAYBOOK.milestones[id].depends_on:
            await tasks[before]
        await nothing(id)

    for id in in_order():
        tasks[id] = asyncio.create_task(one(id))
    await asyncio.gather(*tasks.values())
    return n


def in_order() -> list[str]:
    """List the milestones, each after all that it depends on."""
    told = list[str]()
    while len(told) < len(PLAYBOOK.milestones):
        told += [
            id
            for id, one in PLAYBOOK.milestones.items()
            if id not in told and set(one.depends_on) <= set(told)
        ]
    return told


@asynccontextmanager
async def dbos(url: str) -> AsyncIterator[Launch]:
    """Run a workflow of 29 steps for each launch; each step's result is recorded."""
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

    async def launch(n: int) -> None:
        handle = await DBOS.start_workflow_async(whole_graph, n)
        await handle.get_result()

    try:
        yield launch
    finally:
        DBOS.destroy()


async def missing_for_prefect(url: str) -> str | None:
    """Say what Prefect lacks here; None: nothing."""
    if not PREFECT.exists():
        return "`make bench` installs it"
    connection = await asyncpg.connect(url)
    try:
        has = await connection.fetchval(
            "SELECT true FROM pg_available_extensions WHERE name = 'pg_trgm'"
        )
    finally:
        await connection.close()
    return None if has else "PREFECT_DATABASE_URL names no PostgreSQL that has pg_trgm"


@asynccontextmanager
async def prefect(url: str) -> AsyncIterator[Ask]:
    """Run flows in Prefect's own environment; gives what answers how many seconds so many at once took."""
    flow = measure.ROOT / "bench" / "peers" / "prefect_flow.py"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(PREFECT, flow, stdin=pipe, stdout=pipe)
    graph = [[id, list(PLAYBOOK.milestones[id].depends_on)] for id in in_order()]

    async def said(told: Any) -> dict[str, Any]:
        assert process.stdin
        assert process.stdout
        process.stdin.write(orjson.dumps(told) + b"\n")
        await process.stdin.drain()
        answered: dict[str, Any] = orjson.loads(await process.stdout.readline())
        return answered

    async def ask(at_once: int) -> float:
        return float((await said(at_once))["seconds"])

    try:
        await said({"url": url, "graph": graph})
        yield ask
    finally:
        if process.stdin:
            process.stdin.close()
        await process.wait()


WAYS: dict[str, Callable[[str], Any]] = {"tolsey": tolsey, "DBOS": dbos}


async def figure(url: str, way: Callable[[str], Any], at_once: int) -> float:
    """Say how many milliseconds a step took, of so many launches at once."""
    async with way(url) as launch:
        await launch(0)
        began = perf_counter()
        await asyncio.gather(*(launch(n) for n in range(at_once)))
        return (perf_counter() - began) * 1000 / (at_once * len(PLAYBOOK.milestones))


async def compare(url: str, prefect_url: str, *, rounds: int) -> None:
    """Let all take turns on one PostgreSQL, and print medians."""
    rows = []
    async with AsyncExitStack() as stack:
        missing = await missing_for_prefect(prefect_url)
        ask = None if missing else await stack.enter_async_context(prefect(prefect_url))
        if missing:
            print(f"without Prefect: {missing}")
        for at_once in AT_ONCE:
            rows += await turns(url, ask, at_once, rounds)
    measure.table(
        "29 steps of a launch with nothing in them",
        ["", "launches at once", "ms a step", "times ours"],
        rows,
    )


async def turns(url: str, ask: Ask | None, at_once: int, rounds: int) -> list[list[Any]]:
    """Measure all of them, one after the other, and again."""
    took: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            took[name].append(await figure(url, way, at_once))
        if ask is not None:
            ms = await ask(at_once) * 1000 / (at_once * len(PLAYBOOK.milestones))
            took.setdefault("Prefect", []).append(ms)
    ours = median(took["tolsey"])
    return [[name, at_once, median(ms), median(ms) / ours] for name, ms in took.items()]


def main() -> None:
    """Run it on servers of its own."""
    said = measure.arguments(__doc__ or "").parse_args()
    measure.machine(said.loop)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with (
        measure.servers() as (server_url, _),
        measure.database(server_url) as url,
        measure.database(os.environ.get("PREFECT_DATABASE_URL", server_url)) as prefect_url,
    ):
        measure.run(
            partial(compare, url, prefect_url, rounds=1 if said.quick else ROUNDS), said.loop
        )


if __name__ == "__main__":
    main()
