"""A campaign: real processes under a seeded schedule of faults, and the verdict on what they said.

`python -m tests.campaigns.cluster.campaign SEED SECONDS [PLANTED]` runs one by hand.
"""

import asyncio
import base64
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from tests.campaigns.cluster import linear
from tests.campaigns.cluster.clients import ACCOUNTS, ANSWERS, Op, Record, Workload
from tests.campaigns.cluster.faults import NODES, PLACES, Fault, schedule
from tests.campaigns.cluster.ground import Ground, ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.cluster.nemesis import Nemesis
from tests.campaigns.cluster.processes import Node, Terms
from tests.campaigns.cluster.verdict import Claim, Verdict, owned, save, searched, sums, waits

LISTEN_SECONDS = 0.5
PROGRESS_SECONDS = 5.0
QUIET_SECONDS = 120.0
"""Within this time after the last fault everything that was accepted has taken effect."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a campaign is to be run."""

    seed: int
    seconds: float
    lease_seconds: float = 1.5
    planted: str = ""
    say: Callable[[str], object] = lambda _: None
    faults: tuple[Fault, ...] | None = None
    """Instead of those of the seed."""
    one_by_one: bool = False
    """Whether each fault waits for the end of the one before it."""


async def campaign(plan: Plan) -> Verdict:
    """Run one campaign and judge it."""
    keyring = "c1:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    terms = Terms(plan.lease_seconds, keyring, plan.planted)
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(ground())
        nodes = [Node(place, base, terms) for place in range(PLACES)]
        for node in nodes:
            await stack.enter_async_context(node.standing())
        async with asyncio.TaskGroup() as starting:
            for node in nodes[:NODES]:
                starting.create_task(node.start())
        return await _Run(plan, base, nodes).judged()


class _Run:
    """The time between the first call and the verdict."""

    def __init__(self, plan: Plan, base: Ground, nodes: Sequence[Node]) -> None:
        self._plan = plan
        self._ground = base
        self._nodes = nodes
        self._record = Record()
        self._nemesis = Nemesis(nodes, base, plan.lease_seconds)
        self._work = Workload(
            *(plan.seed, nodes, self._record, plan.lease_seconds, self._nemesis.occasion)
        )

    async def judged(self) -> Verdict:
        plan = self._plan
        faults = schedule(plan.seed, plan.seconds, plan.lease_seconds)
        faults = faults if plan.faults is None else list(plan.faults)
        await self._warm()
        began = time.monotonic()
        watching = asyncio.create_task(self._watch(began))
        working = asyncio.create_task(self._work.run())
        try:
            await self._nemesis.run(faults, one_by_one=plan.one_by_one)
            await asyncio.sleep(max(0.0, began + plan.seconds - time.monotonic()))
            await self._nemesis.heal(len(self._nodes[:NODES]))
            self._work.ending = True
            await working
            took = time.monotonic() - began
            stuck, quiet = await self._quiesce()
            await self._listen()
        finally:
            watching.cancel()
            working.cancel()
            await asyncio.gather(watching, working, return_exceptions=True)
        return await self._judge(faults, took, stuck, quiet)

    async def _warm(self) -> None:
        """Begin when every account answers everywhere."""
        for node in self._nodes[:NODES]:
            for key in ACCOUNTS:
                await self._ask_until(node, Op("warm", "read", key), QUIET_SECONDS)

    async def _ask_until(self, node: Node, op: Op, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if await self._work.attempt(op, node, min(5.0, seconds)) in ANSWERS:
                return True
            await asyncio.sleep(0.1)
        return False

    async def _quiesce(self) -> tuple[int, float]:
        """Wait until no work is left, then look at everything once more; count what is stuck."""
        began = time.monotonic()
        left = 1
        while left and time.monotonic() - began < QUIET_SECONDS:
            left = await self._ground.count("outbox")
            await asyncio.sleep(0.05)
        quiet = time.monotonic() - began
        left += await self._ground.count("dead_letters")
        for node in self._nodes:
            if not node.serving:
                continue
            last = [Op(f"last-{node.name}-{key}", "read", key) for key in ACCOUNTS]
            answered = await asyncio.gather(
                *(self._ask_until(node, op, QUIET_SECONDS) for op in last)
            )
            left += answered.count(False)
        return left, quiet

    async def _watch(self, began: float) -> None:
        shown = began
        while True:
            await asyncio.sleep(LISTEN_SECONDS)
            await self._listen()
            if time.monotonic() - shown > PROGRESS_SECONDS:
                shown = time.monotonic()
                self._plan.say(
                    f"cluster {shown - began:.0f} s: answered={self._record.answered}"
                    f" faults={sum(self._nemesis.landed.values())}"
                    f" serving={[node.name for node in self._nodes if node.serving]}"
                )

    async def _listen(self) -> None:
        for node in self._nodes:
            with suppress(OSError, TimeoutError):
                await node.listen()

    async def _judge(self, faults: list[Fault], took: float, stuck: int, quiet: float) -> Verdict:
        lines = await self._ground.lines()
        rows = await self._ground.fetch("SELECT key, count, total FROM campaign_accounts")
        standing = {row["key"]: (row["count"], row["total"]) for row in rows}
        owners = await self._ground.fetch(
            "SELECT at, slot, epoch, owner, previous FROM campaign_owners ORDER BY at"
        )
        left = await self._ground.left()
        waiting = {row["payload"]["op"]: row["payload"]["amount"] for row in left}
        moving = sum(amount for op, amount in waiting.items() if op.endswith(linear.CREDIT))
        calls = self._record.calls
        counters: Counter[str] = Counter()
        for node in self._nodes:
            counters += node.counters
        verdict = Verdict(
            *(self._plan.seed, took, faults, self._nemesis, self._record, lines, counters),
            found=[
                *linear.check(calls, lines, waiting),
                *sums(lines, standing, moving),
                *owned(lines, [Claim(*row) for row in owners]),
                *searched(calls, lines),
            ],
            handed_over=sum(row["previous"] is not None for row in owners),
            stuck=stuck,
            quiet_seconds=quiet,
        )
        if stuck:
            verdict.found.append(
                Finding("stuck", f"{stuck} pieces of work never ended: {left[:5]}")
            )
        for loss in self._nemesis.losses:
            took_over = sorted(waits(loss, calls, lines))
            verdict.takeovers.setdefault(loss.kind, []).extend(took_over[:1])
        if verdict.found and not self._plan.planted:
            path = save(verdict)
            for node in self._nodes:
                node.keep_log(path.with_suffix(f".{node.name}.log"))
            verdict.found.append(Finding("history", str(path)))
        return verdict


def main(seed: str, seconds: str, planted: str = "") -> int:
    """Run a campaign by hand."""
    plan = Plan(
        int(seed),
        float(seconds),
        planted=planted,
        say=lambda line: print(line, flush=True),  # noqa: T201 - as the next
    )
    verdict = asyncio.run(campaign(plan))
    for line in (*verdict.nemesis.log, *verdict.record.errors.most_common(20), verdict):
        print(line)  # noqa: T201 - the figures are what a campaign is for
    for finding in verdict.found[:20]:
        print(finding)  # noqa: T201 - as above
    return bool(verdict.found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
