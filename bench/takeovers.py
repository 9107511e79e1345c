"""How long a store waits when its owner dies, and what a planned hand-over costs: `bench/shards.py`."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

from bench import measure
from bench.asking import Program, Result, quantile
from bench.cluster import Cluster, keys_of, settled

PROBED = 16
"""Counters of the owner that dies; each is asked without pause before, during and after."""
ASKERS = 16
HANDED = 64
WAIT_SECONDS = 60.0


async def deaths(near: Cluster, far: Sequence[Cluster], *, quick: bool) -> None:
    """Kill owners and print how long their counters gave no answer.

    Those that count as on lost machines die in several services at once: they only wait.
    """
    rounds = 2 if quick else 25
    reported = await _die_often(near, rounds, remote=False)
    each = 1 if quick else -(-rounds // len(far))
    several = await asyncio.gather(*(_die_often(cluster, each, remote=True) for cluster in far))
    unheard = [one for some in several for one in some]
    rows = []
    for name, found in (("same machine: the kernel tells", reported), ("lost machine", unheard)):
        first = sorted(min(one) for one in found)
        every = sorted(max(one) for one in found)
        shares = [quantile(some, share) for some in (first, every) for share in (0.5, 0.99)]
        rows.append([name, len(found), *(f"{seconds:.3f}" for seconds in shares)])
    measure.table(
        f"Seconds from `kill -9` of an owner to durable answers of its successor (of {PROBED} counters"
        " the first, and the last of all)",
        ["", "deaths", "first p50", "first p99", "last p50", "last p99"],
        rows,
    )


async def _die_often(cluster: Cluster, rounds: int, *, remote: bool) -> list[list[float]]:
    """Kill the second of two owners so often; answer the seconds of every counter each time."""
    found = []
    async with cluster.node(remote=remote) as survivor:
        for turn in range(rounds):
            async with cluster.node(remote=remote) as victim:
                owners = await settled([survivor, victim])
                keys = keys_of(owners, victim.ready, PROBED, f"dies-{turn}")
                probe = asyncio.create_task(
                    survivor.do(
                        "await", keys=keys, former=victim.ready, seconds=WAIT_SECONDS, within=90
                    )
                )
                await asyncio.sleep(0.3 + random.random() / 2)  # noqa: S311 - any moment of a beat
                killed = time.monotonic()
                victim.kill()
                seen = await probe
            if len(seen["found"]) < PROBED:
                raise RuntimeError(f"not answered in {WAIT_SECONDS} s: {seen['failures']}")
            found.append([at - killed for at in seen["found"].values()])
            measure.say(
                f"death {turn + 1} of {rounds}{', unheard' if remote else ''}:"
                f" {min(found[-1]):.3f} to {max(found[-1]):.3f} s,"
                f" failed asks: {len(seen['failures'])}"
            )
    return found


async def hand_overs(cluster: Cluster, *, quick: bool) -> None:
    """Move slots under load, let a process join and leave under load, and print what failed."""
    rows = []
    async with cluster.nodes(2) as nodes:
        keys = [f"handed-{n}" for n in range(HANDED)]
        for name, work in (
            ("every slot there and back", _back_and_forth),
            ("a third process joins and leaves", _come_and_go),
        ):
            before = await cluster.total()
            seen, took = await _under_load(cluster, nodes, keys, work, times=1 if quick else 3)
            asks = sum(one["asks"] for one in seen)
            failed = sum(one["failed"] for one in seen)
            kept = await cluster.total() - before
            measure.say(f"{name}: {[one['failures'] for one in seen]}")
            await cluster.unpin()
            await settled(nodes)
            rows.append(
                [
                    name,
                    len(took),
                    f"{quantile(sorted(took), 0.5):.2f}",
                    asks,
                    failed,
                    kept - (asks - failed),
                    f"{max(one['p99_ms'] for one in seen):.0f}",
                    f"{max(one['longest_ms'] for one in seen):.0f}",
                ]
            )
    measure.table(
        f"Planned hand-overs under {2 * ASKERS} askers of durable turns (found on disk beyond what was"
        " answered must be 0 where nothing failed)",
        ["", "times", "took s, p50", "asks", "failed", "beyond", "p99 ms", "longest ms"],
        rows,
    )


async def _under_load(
    cluster: Cluster, nodes: Sequence[Program], keys: Sequence[str], work: Any, *, times: int
) -> tuple[list[Result], list[float]]:
    """Do planned work some times while both processes ask; answer what they saw, what it took."""
    took: list[float] = []
    done = False

    async def ask(one: Program) -> list[Result]:
        seen = []
        while not done:
            found = await one.do(
                "ask", message="raise", keys=keys, askers=ASKERS, seconds=1.0, turns=True
            )
            seen.append(found)
        return seen

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(ask(one)) for one in nodes]
        try:
            for _ in range(times):
                await asyncio.sleep(0.5)
                took += await work(cluster, nodes)
            await asyncio.sleep(0.5)
        finally:
            done = True
    return [found for task in asking for found in task.result()], took


async def _back_and_forth(cluster: Cluster, nodes: Sequence[Program]) -> list[float]:  # noqa: ARG001 - as the other
    """Give every slot to the first process, then all to the second."""
    took = []
    for target in nodes:
        owners = await nodes[0].do("holdings")
        for giver in nodes:
            which = [int(slot) for slot, owner in owners.items() if owner == giver.ready]
            if giver is not target and which:
                took.append(await giver.do("move", which=which, to=target.ready))
    return took


async def _come_and_go(cluster: Cluster, nodes: Sequence[Program]) -> list[float]:
    """Let a third process join, and leave when it has its share."""
    started = time.monotonic()
    async with cluster.node() as third:
        await settled([*nodes, third])
        joined = time.monotonic()
    left = time.monotonic()
    return [joined - started, left - joined]
