"""What an ask costs that crosses processes, and what more processes add: parts of `bench/shards.py`."""

import asyncio
import importlib.util
import statistics
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench import measure
from bench.asking import Program, Result
from bench.cluster import Cluster, keys_of, settled
from bench.costs import Meter, between, supported

ASKERS = (1, 64, 1_000)
DURABLE_ASKERS = 64
KEYS = ("per_second", "p50_ms", "p99_ms")
NOT_INSTALLED = "not installed"

Found = dict[tuple[str, int], list[Result]]


async def compare(cluster: Cluster, *, quick: bool) -> None:
    """Let the contestants take turns, each in fresh processes, and print what came of it."""
    rounds = 1 if quick else 3
    seconds = 0.3 if quick else 2.0
    contestants = {"tolsey": _ours(cluster), "xoscar": _peer("xoscar"), "Ray": _peer("ray")}
    found: Found = {}
    for turn in range(rounds):
        for name in contestants if turn % 2 == 0 else reversed(contestants):
            measure.say(f"round {turn + 1} of {rounds}: asks, {name}")
            await contestants[name](found, seconds, cluster.folder)
    _print(_medians(found))


def _ours(cluster: Cluster) -> Any:
    async def run(found: Found, seconds: float, folder: Path) -> None:  # noqa: ARG001 - as all contestants
        async with cluster.nodes(2) as (here, there):
            owners = await settled([here, there])
            for askers in ASKERS:
                for name, owner in (("tolsey, local", here), ("tolsey", there)):
                    keys = keys_of(owners, owner.ready, askers)
                    # Actors that are awake: what is measured is the way to them.
                    await here.do("ask", message="count", keys=keys, askers=askers, seconds=0.1)
                    seen = await here.do(
                        "ask", message="count", keys=keys, askers=askers, seconds=seconds
                    )
                    _note(found, name, askers, seen)
            for name, owner, counters in (
                ("local", here, DURABLE_ASKERS),
                ("crossing", there, DURABLE_ASKERS),
                ("local, all of one counter", here, 1),
            ):
                keys = keys_of(owners, owner.ready, counters)
                asks: dict[str, Any] = {"message": "raise", "keys": keys, "askers": DURABLE_ASKERS}
                await here.do("ask", **asks, seconds=0.1)
                seen = await here.do("ask", **asks, seconds=seconds)
                _note(found, name, DURABLE_ASKERS, seen)

    return run


def _peer(library: str) -> Any:
    async def run(found: Found, seconds: float, folder: Path) -> None:
        if importlib.util.find_spec(library) is None:
            return
        program = Program(f"bench.peers.{library}_processes", log=folder / f"{library}.log")
        async with program:
            await program.do("ask", askers=8, seconds=0.3)
            for askers in ASKERS:
                seen = await program.do("ask", askers=askers, seconds=seconds)
                _note(found, "Ray" if library == "ray" else library, askers, seen)

    return run


def _note(found: Found, name: str, askers: int, seen: Result) -> None:
    if seen["failed"]:
        raise RuntimeError(f"{name}, {askers} askers: {seen['failures']}")
    found.setdefault((name, askers), []).append(seen)


def _medians(found: Found) -> dict[tuple[str, int], dict[str, float]]:
    return {
        which: {key: statistics.median(one[key] for one in seen) for key in KEYS}
        for which, seen in found.items()
    }


def _print(medians: Mapping[tuple[str, int], Mapping[str, float]]) -> None:
    names = ("tolsey, local", "tolsey", "xoscar", "Ray")
    rows: list[list[Any]] = []
    for askers in ASKERS:
        ours = medians["tolsey", askers]
        for name in names:
            one = medians.get((name, askers))
            if one is None:
                rows.append([f"{name}, {askers:,}", NOT_INSTALLED, "", "", "", ""])
            else:
                ratios = [ours["per_second"] / one["per_second"], one["p50_ms"] / ours["p50_ms"]]
                rows.append([f"{name}, {askers:,}", *_figures(one), *map(_ratio, ratios)])
    measure.table(
        "Asks of a counter in another process, in memory (medians; a local ask stays in its process;"
        " ratios are those of tolsey's crossing to the line's: asks/s, and how often faster at p50)",
        ["to, askers", "asks/s", "p50 ms", "p99 ms", "asks/s ratio", "p50 ratio"],
        rows,
    )
    durable = ("local", "crossing", "local, all of one counter")
    local = medians["local", DURABLE_ASKERS]["per_second"]
    measure.table(
        f"Durable asks, {DURABLE_ASKERS} askers (medians; ratio to local)",
        ["", "asks/s", "p50 ms", "p99 ms", "ratio"],
        [
            [name, *_figures(one), f"{one['per_second'] / local:.2f}"]
            for name in durable
            for one in (medians[name, DURABLE_ASKERS],)
        ],
    )


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"1/{1 / ratio:,.0f}"


def _figures(one: Mapping[str, float]) -> list[str]:
    return [
        f"{one['per_second']:,.0f}",
        *(f"{one[key]:.4f}" if one[key] < 0.01 else f"{one[key]:.2f}" for key in KEYS[1:]),
    ]


async def spread(clusters: Mapping[int, Cluster], *, quick: bool) -> None:
    """Ask through 1, 2 and 4 processes at once, any key through any process."""
    rounds = 1 if quick else 3
    seconds = 0.3 if quick else 2.0
    found: dict[tuple[str, int], list[Result]] = {}
    async with AsyncExitStack() as stack:
        nodes = {
            n: await stack.enter_async_context(cluster.nodes(n)) for n, cluster in clusters.items()
        }
        for turn in range(rounds):
            for n in nodes if turn % 2 == 0 else reversed(nodes):
                for message in ("count", "raise"):
                    seen = await _through(nodes[n], clusters[n], message, seconds)
                    found.setdefault((message, n), []).append(seen)
                    measure.say(
                        f"round {turn + 1} of {rounds}: {message}, {n} processes:"
                        f" {seen['per_second']:,.0f}/s"
                    )
    columns = ["processes", "asks/s", "p50 ms", "p99 ms", "ratio", "CPU µs of ours", "PostgreSQL"]
    columns += ["Redis", "Redis bytes"]
    for message, what in (("raise", "Durable asks"), ("count", "Asks in memory")):
        rows = [_row(n, found[message, n], found[message, next(iter(clusters))]) for n in clusters]
        measure.table(
            f"{what}, {DURABLE_ASKERS} askers spread over the processes, any key through any process"
            " (medians; ratio to one process; processor time and bytes of each ask)",
            columns,
            rows,
        )


async def _through(
    nodes: Sequence[Program], cluster: Cluster, message: str, seconds: float
) -> Result:
    """Let every process ask its part of the same counters, most of them elsewhere."""
    keys = [f"spread-{n}" for n in range(DURABLE_ASKERS)]
    meters = [Meter(cluster.database_url, cluster.redis_url, one.pid) for one in nodes]
    each = DURABLE_ASKERS // len(nodes)

    async def through(n: int, length: float) -> Result:
        found: Result = await nodes[n].do(
            "ask", message=message, keys=keys, askers=each, seconds=length, turns=True
        )
        return found

    await asyncio.gather(*(through(n, 0.1) for n in range(len(nodes))))
    before = [await meter.read() for meter in meters] if supported() else []
    seen = await asyncio.gather(*(through(n, seconds) for n in range(len(nodes))))
    after = [await meter.read() for meter in meters] if before else []
    failed = {name: one for one in seen for name in one["failures"]}
    if failed:
        raise RuntimeError(f"{message} through {len(nodes)} processes: {failed}")
    result: Result = {
        "per_second": sum(one["per_second"] for one in seen),
        "p50_ms": statistics.median(one["p50_ms"] for one in seen),
        "p99_ms": max(one["p99_ms"] for one in seen),
    }
    if before:
        asks = sum(one["asks"] for one in seen)
        cost = between(before[0], after[0], asks)
        cost["tolsey"] = sum(
            between(a, b, asks)["tolsey"] for a, b in zip(before, after, strict=True)
        )
        result["cost"] = cost
    return result


def _row(n: int, seen: Sequence[Result], single: Sequence[Result]) -> list[Any]:
    speed = statistics.median(one["per_second"] for one in seen)
    of_one = statistics.median(one["per_second"] for one in single)
    costs = []
    for name, factor in (("tolsey", 1e6), ("postgresql", 1e6), ("redis", 1e6), ("redis_bytes", 1)):
        values = [one["cost"][name] * factor for one in seen if "cost" in one]
        costs.append(f"{statistics.median(values):,.0f}" if values else "")
    middle = [statistics.median(one[key] for one in seen) for key in KEYS[1:]]
    return [str(n), speed, *middle, f"{speed / of_one:.2f}", *costs]
