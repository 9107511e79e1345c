"""What growth costs: every page, tool, job and admin list while the service fills up.

A real `tolsey serve` is asked for everything it says it can be asked (`surface.py`), empty and then at
two or three sizes of one world (`world.py`): a large tenant beside a small one and many like it. Each
line has the law it follows, fitted over the sizes. What can be asked is listed by the service itself,
and what is left out is printed with the reason. Jobs run under a steady load of deliveries, and
spends are timed at 10 to 10,000 open lots.
"""

import asyncio
import itertools
import json
import math
import re
import secrets
import statistics
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import asyncpg
import httpx

from bench import ledger, load, measure, orders, surface, world
from bench.asking import quantile
from bench.surface import Answer, Ask, Surface
from bench.tenants import Growing, values_of
from bench.world import Tenant
from tolsey.actors.job.catalogue import JOBS
from tolsey.http.chat.prompt import PASSAGES, written
from tolsey.http.memory.finding import MemorySearch
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.reports.pool import Reports

PAGE_MS: Final = 100.0
REPORT_MS: Final = 300.0
REPORTS: Final = frozenset(
    {
        *("get_sales_report", "get_low_stock_report", "list_customers"),
        *("get_best_sellers", "get_stock_forecast", "get_refund_report"),
        *("get_customer_cohorts", "get_attribution_report"),
    }
)
"""Tools that add a store up; all else is a page of it."""
CHAT: Final = "POST /api/chat, what the model is told of a store"
DOCUMENT: Final = "document"
"""What adds nothing up, and sends all that there is: its beginning takes as long as a report may."""
JOB_FACTOR: Final = 3.0
SPEND_FACTOR: Final = 1.5
NOISE_MS: Final = 5.0
"""What a machine that others use adds by itself: less growth than that is none."""
ENOUGH_SECONDS: Final = 10.0
"""What took so long in all is not asked again."""
LOTS: Final = (10, 100, 1_000, 10_000)
SENDERS: Final = 2
LONGEST_SECONDS: Final = 300.0
"""So long deliveries are counted beside one job."""
WINDOW_SECONDS: Final = 3.0

Seen = dict[str, dict[str, list[float]]]
"""Seconds by what was asked, and of whom."""
Sizes = Mapping[str, int]
"""Bytes of the large tenant's answers by what was asked."""


def law(points: Sequence[tuple[int, float]]) -> str:
    """Name how milliseconds follow the number of rows: O(1), O(log n) or O(n), whichever fits."""
    if len(points) < 3:
        return "?"  # any line goes through two points
    (_, first), *_, (_, last) = points
    if last - first < max(NOISE_MS, first / 2):
        return "O(1)"
    shapes: dict[str, Callable[[float], float]] = {"O(log n)": math.log1p, "O(n)": float}
    return min(shapes, key=lambda name: _left_over(points, shapes[name]))


def _left_over(points: Sequence[tuple[int, float]], shape: Callable[[float], float]) -> float:
    """Sum the squares of what a line through `shape` of the sizes does not explain."""
    xs, ys = [shape(n) for n, _ in points], [ms for _, ms in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread
    return sum((y - middle_y - slope * (x - middle_x)) ** 2 for x, y in zip(xs, ys, strict=True))


async def ask_all(
    growing: Growing, client: httpx.AsyncClient, only: re.Pattern[str], *, most: int, rounds: int
) -> tuple[Seen, dict[str, int], Surface]:
    """Ask both tenants everything so many times, in turn; answer how long each answer took.

    Also the bytes of the large tenant's answers, and what was there to ask; what was refused is left.
    """
    surfaces = {
        tenant.name: await surface.surface(
            client, tenant, {**values_of(tenant, most), **growing.made[tenant.name]}
        )
        for tenant in growing.tenants
    }
    seen: Seen = {}
    sizes: dict[str, int] = {}
    refused: dict[tuple[str, str], str] = {}
    cursors: dict[tuple[str, str], str | None] = {}
    asked = [
        (t, ask) for t in growing.tenants for ask in surfaces[t.name].asks if only.search(ask.name)
    ]
    for number in range(rounds):
        for tenant, general in asked if number % 2 == 0 else reversed(asked):
            ask = general.after(cursors.get((tenant.name, general.plain)))
            if ask is None or (tenant.name, ask.name) in refused:
                continue
            before = seen.get(ask.name, {}).get(tenant.name, ())
            if sum(before) > ENOUGH_SECONDS:
                continue
            started = perf_counter()
            answer = await _asked(growing, client, tenant, ask)
            took = perf_counter() - started
            # In an empty service some things are not there to be answered.
            if answer.refusal and most:
                refused[tenant.name, ask.name] = answer.refusal
                continue
            if ask.name == ask.plain:
                cursors[tenant.name, ask.name] = answer.next_page
            seen.setdefault(ask.name, {}).setdefault(tenant.name, []).append(took)
            if tenant.name == "large":
                sizes[ask.name] = len(answer.body)
                if answer.is_document:
                    surfaces["large"].documents.add(ask.name)
    left = surfaces["large"].left
    left |= {f"{name} ({who} tenant)": why for (who, name), why in refused.items()}
    return seen, sizes, surfaces["large"]


async def tell_model(growing: Growing, rounds: int) -> dict[str, list[float]]:
    """Time what a question reads of a store before its model is asked, for both tenants."""
    took: dict[str, list[float]] = {}
    database, reports = Database(growing.url), Reports(growing.url)
    await database.open()
    await reports.open()

    async def nobody(_: ActorId, __: Message[Any]) -> None:
        raise AssertionError("words are looked up without an actor")

    search = MemorySearch(database, nobody, lambda: datetime.now(UTC))
    try:
        for tenant, _ in itertools.product(growing.tenants, range(rounds)):
            at = datetime.now(UTC)
            store = StoreRow(
                id=tenant.store_id,
                organization_id=tenant.organization_id,
                name="Lamps",
                created_at=at,
            )
            whose = reports.of(tenant.organization_id)
            started = perf_counter()
            # What is given up has taken too long, and is told as that.
            with suppress(StorageError):
                found = await search.find(store.organization_id, store.id, "Which lamp?", PASSAGES)
                await written(database, whose, store=store, remembered=found, at=at)
            took.setdefault(tenant.name, []).append(perf_counter() - started)
    finally:
        await reports.close()
        await database.close()
    return took


async def _asked(growing: Growing, client: httpx.AsyncClient, tenant: Tenant, ask: Ask) -> Answer:
    if ask.arguments is not None:
        tool = ask.name.split()[0]
        headers, message = surface.call("tools/call", name=tool, arguments=dict(ask.arguments))
        headers["Authorization"] = f"Bearer {tenant.token}"
        sent = client.stream("POST", ask.path, headers=headers, json=message)
    else:
        headers = dict(tenant.headers)
        if ask.kind == "key":
            headers = {"X-Api-Key": tenant.api_key}
        elif ask.kind == "admin" or ask.path.startswith("/admin/"):
            headers = dict(growing.administrator)
        sent = client.stream("GET", ask.path, params=ask.query, headers=headers)
    async with sent as response:
        return await Answer.of(response)


async def run_jobs(
    growing: Growing, client: httpx.AsyncClient, names: Sequence[str], *, quick: bool
) -> tuple[list[list[Any]], list[str]]:
    """Run jobs while deliveries come steadily; answer the table's lines, and what missed."""
    window = 0.5 if quick else WINDOW_SECONDS
    await _deliveries(growing, window)  # the first of a service that was started wake its store up
    lines: list[list[Any]] = []
    missed, alone = [], list[float]()
    for name in names:
        runs: list[float] = []
        waits: list[float] = []

        async def again(job: str = name, runs: list[float] = runs) -> None:
            for _ in range(2 if quick else 6):
                started = perf_counter()
                counted = await _run(growing, client, job)
                runs.append(perf_counter() - started)
                if len(runs) == 1:
                    measure.say(f"{job}: {runs[0]:.1f} s, {counted}")
                elif sum(runs) > ENOUGH_SECONDS:
                    return

        # A disk that others use is not the same for long: what nothing disturbs is seen before each job.
        alone.append(_p99(await _deliveries(growing, window)))
        idle = statistics.median(alone)
        running = asyncio.create_task(again())
        began = perf_counter()
        while (not running.done() and perf_counter() - began < LONGEST_SECONDS) or not waits:
            waits += await _deliveries(growing, window)
        if not running.done():
            # Whoever joins it no longer leaves it at work: it takes its turns with the jobs that follow.
            running.cancel()
            runs = runs or [LONGEST_SECONDS]
            print(f"{name}: still at work after {LONGEST_SECONDS:.0f} s", flush=True)
        else:
            await running
        p99 = _p99(waits)
        lines.append(
            [name, *(_ms(one) for one in (runs[:1], runs[1:] or runs)), _p99(runs), p99, p99 / idle]
        )
        # Printed as it ends: a run that is cut short has told of those before.
        said = f"{runs[0]:.2f} s, then {runs[-1]:.2f} s; deliveries p99 {p99:.1f} ms"
        print(f"{name}: {said}, {p99 / idle:.1f} times that of no job ({idle:.1f})", flush=True)
        if p99 > JOB_FACTOR * idle + NOISE_MS:
            missed.append(f"job {name}: deliveries' p99 is {p99 / idle:.1f} times that of no job")
    if alone:
        lines.insert(0, ["(no job)", "", "", "", statistics.median(alone), 1.0])
    return lines, missed


async def _run(growing: Growing, client: httpx.AsyncClient, job: str) -> str:
    """Have a job run to its end, however long that takes; answer what it counted."""
    while True:
        answer = await client.post(
            f"/api/admin/crons/{job}/run",
            json={"reason": "a bench"},
            headers=growing.administrator,
        )
        # A long run goes on without its caller, who joins it again.
        if answer.raise_for_status().status_code != httpx.codes.ACCEPTED:
            return str(answer.json()["outcome"])


async def _deliveries(growing: Growing, seconds: float) -> list[float]:
    """Send deliveries of the large store for some seconds, each connection one after the other."""
    most = int(seconds * 600)
    waiting = deque(orders.requests("/api/webhooks/commerce/events", growing.delivered, most))
    growing.delivered += most
    growing.remember()
    sent = await load.send(waiting, growing.port, seconds, SENDERS, b'"accepted"')
    if sent.first_refusal or sent.broken:
        raise RuntimeError(f"a delivery was refused: {sent.first_refusal or 'broken'}")
    return sent.seconds


def _ms(seconds: Sequence[float], share: float = 0.5) -> float:
    return quantile(sorted(seconds), share) * 1000


_p99 = partial(_ms, share=0.99)


async def spends(url: str, *, quick: bool) -> tuple[list[list[Any]], list[str]]:
    """Time spends of organizations with 10 to 10,000 open lots, in a service's own runtime."""
    count = 40 if quick else 400
    took: dict[int, list[float]] = {}
    run = secrets.token_hex(4)  # a world that stays has the organizations of the runs before
    async with ledger.running(url) as (runtime, database):
        connection = await asyncpg.connect(url)
        try:
            for lots in LOTS:
                name = f"org_lots{lots}_{run}"
                await connection.execute(
                    "INSERT INTO organizations (id, name) VALUES ($1, $1)", name
                )
                await world.fill_ledger(connection, name, lots, 0)
        finally:
            await connection.close()
        one = ledger.Ours(runtime, database)
        for number in range(count + 5):
            for lots in LOTS:
                started = perf_counter()
                await one.spend_of(f"org_lots{lots}_{run}", f"spend:growth:{lots}:{number}")
                if number >= 5:  # the first wake the organization up
                    took.setdefault(lots, []).append(perf_counter() - started)
    first = _ms(took[LOTS[0]])
    lines = [[lots, _ms(found), _p99(found), _ms(found) / first] for lots, found in took.items()]
    factor = lines[-1][-1]
    missed = [f"spends at {LOTS[-1]:,} lots cost {factor:.1f} times those at {LOTS[0]}"]
    return lines, missed if factor > SPEND_FACTOR else []


def show(
    stages: Mapping[int, Seen], sizes: Mapping[int, Sizes], kinds: Mapping[str, str]
) -> list[str]:
    """Print what was asked, the slowest first; answer what misses its aim."""
    drift = {n: _drift(stages[0], seen) for n, seen in stages.items()}
    _, begins, *_ = *stages, 0
    *_, most = stages
    lines, missed = [], []
    for name, of in stages[most].items():
        if "large" not in of:
            continue
        took = {who: [_ms(of.get(who, ()), 0.5), _p99(of.get(who, ()))] for who in of}
        empty = stages[0].get(name, {}).get("large", ())
        # What else runs on the machine moves the fastest answers least.
        points = [
            (n, min(seen[name]["large"]) * 1000 / drift[n])
            for n, seen in stages.items()
            if "large" in seen.get(name, ())
        ]
        follows = law(points)
        # An answer that says more takes longer; no aim is for those.
        size = sizes[most].get(name, 0)
        grows = size > 2 * max(sizes[begins].get(name, 0), 1_000)
        said = [size / 1024, f"{follows}, so does its answer" if grows else follows]
        small = took.get("small", ["", ""])
        lines.append([name, kinds[name], *took["large"], *small, _ms(empty), _p99(empty), *said])
        is_report = name.split()[0] in REPORTS or kinds[name] == DOCUMENT
        aim, p99 = REPORT_MS if is_report else PAGE_MS, took["large"][1]
        if p99 > aim and not grows:
            missed.append(f"{name}: p99 {p99:,.0f} ms on the large tenant, the aim is {aim:,.0f}")
        if follows == "O(n)" and not grows:
            missed.append(
                f"{name} is O(n): " + ", ".join(f"{ms:.1f} ms at {n:,}" for n, ms in points)
            )
    columns = ("asked", "kind", "large p50", "p99", "small p50", "p99", "empty p50", "p99", "KB")
    measure.table(
        f"Milliseconds at {most:,} orders of the large store",
        [*columns, "law"],
        sorted(lines, key=lambda line: -line[2]),
    )
    return missed


def _drift(first: Seen, later: Seen) -> float:
    """Tell how much slower the whole machine became: most of what is asked follows no size."""
    return statistics.median(
        min(later[name]["large"]) / min(of["large"])
        for name, of in first.items()
        if "large" in of and "large" in later.get(name, ())
    )


def earlier(
    folder: Path, stages: Mapping[int, Seen] | None = None, sizes: Mapping[int, Sizes] | None = None
) -> tuple[dict[int, Seen], dict[int, Sizes]]:
    """Keep what was seen of the steps of a world so far; answer what is kept."""
    kept = folder / "earlier.json"
    if stages is not None:
        kept.write_text(json.dumps([stages, sizes]), encoding="utf-8")
    if not kept.exists():
        return {}, {}
    seen, said = json.loads(kept.read_text(encoding="utf-8"))
    return {int(n): of for n, of in seen.items()}, {int(n): of for n, of in said.items()}


async def grow(
    growing: Growing,
    size: str,
    only: re.Pattern[str],
    *,
    jobs: re.Pattern[str],
    rounds: int,
    warm: bool,
) -> list[str]:
    """Ask at every step of a size, then run the jobs at the last; answer what misses its aim.

    What was asked is printed before the jobs begin: at the largest size they take as long again.
    """
    stages, sizes = earlier(growing.folder) if growing.recall() else ({}, {})
    steps = (0, *world.SIZES[size])
    for step in steps:
        if step < growing.orders:
            continue
        if step > growing.orders:
            await growing.grow(step)
            there = ", ".join(f"{n:,} {what}" for what, n in world.Size(step).rows.items())
            measure.say(f"there are {there}")
        async with growing.serving() as client:
            if not growing.tenants:
                await growing.sign_up(client)
            if warm:
                await ask_all(growing, client, only, most=step, rounds=1)
                await tell_model(growing, 1)
            stages[step], sizes[step], offered = await ask_all(
                growing, client, only, most=step, rounds=rounds
            )
            stages[step][CHAT] = await tell_model(growing, rounds)
            measure.say(f"asked {len(offered.asks)} things of each tenant, {rounds} times")
            if step < steps[-1]:
                earlier(growing.folder, stages, sizes)
            else:
                kinds = {CHAT: "chat", **{ask.name: ask.kind for ask in offered.asks}}
                kinds |= dict.fromkeys(offered.documents, DOCUMENT)
                missed = show(stages, sizes, kinds)
                measure.table("Not asked", ["what", "why"], sorted(offered.left.items()))
                names = [name for name in JOBS if only.search(name) and jobs.search(name)]
                # It deletes the most rows, and may be at work still when all others are done.
                names.sort(key=lambda name: name == "prune-webhook-deliveries")
                ran, late = await run_jobs(growing, client, names, quick=size == "quick")
    measure.table(
        "Jobs: milliseconds of a first run and of later ones, and of deliveries meanwhile",
        ["job", "first", "again p50", "p99", "deliveries p99", "to idle"],
        ran,
    )
    return missed + late


async def main(
    growing: Growing,
    size: str,
    only: re.Pattern[str],
    *,
    jobs: re.Pattern[str],
    rounds: int,
    warm: bool,
) -> None:
    """Measure, and print what was found."""
    missed = await grow(growing, size, only, jobs=jobs, rounds=rounds, warm=warm)
    lines, wrong = await spends(growing.url, quick=size == "quick")
    columns = ["open lots", "p50", "p99", f"to {LOTS[0]}"]
    measure.table("Spends: milliseconds by open lots", columns, lines)
    print("\nWhat misses its aim" + "".join(f"\n- {one}" for one in missed + wrong or ["nothing"]))


def run() -> None:
    parser = measure.arguments(__doc__ or "")
    sizes = [size for size in world.SIZES if size != "quick"]
    parser.add_argument(
        "--size", choices=sizes, default="small", help="how large the world becomes"
    )
    parser.add_argument("--rounds", type=int, default=12, help="how often each thing is asked")
    parser.add_argument(
        "--world", type=Path, help="a folder in which the world stays, to be asked again"
    )
    parser.add_argument(
        "--only", type=re.compile, default="", help="a pattern of what to ask and which jobs to run"
    )
    parser.add_argument(
        "--jobs", type=re.compile, default="", help="a pattern of which jobs to run"
    )
    parser.add_argument(
        "--warm", action="store_true", help="ask everything once before it is measured"
    )
    given = parser.parse_args()
    size, rounds = ("quick", 6) if given.quick else (given.size, given.rounds)
    measure.machine(given.loop)
    with ExitStack() as stack:
        folder = given.world or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        server_url, redis_url = stack.enter_context(measure.servers(given.world))
        kept = "tolsey_bench_world" if given.world else None
        url = stack.enter_context(measure.database(server_url, kept))
        growing = Growing(url, redis_url, folder)
        work = partial(
            main, growing, size, given.only, jobs=given.jobs, rounds=rounds, warm=given.warm
        )
        measure.run(work, given.loop)


if __name__ == "__main__":
    run()
