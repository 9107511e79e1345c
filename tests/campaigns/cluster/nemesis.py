"""Lets the faults of a schedule happen to real processes and servers, and notes what they cost."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import asyncpg

from tests.campaigns.cluster.clients import ACCOUNTS
from tests.campaigns.cluster.faults import Fault
from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.link import Link
from tests.campaigns.cluster.processes import Node
from tolsey.runtime.turns.mailbox import slot_of

OWNED = "SELECT slot, epoch FROM slot_epochs WHERE owner = $1"
LAND_SECONDS = 90.0
"""Within this time a fault finds what it is to befall, on any machine."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An owner that was taken away, and what it owned: slots, each with its epoch."""

    kind: str
    at: float
    owned: dict[int, int]


class Nemesis:
    """Does to a cluster what a schedule says."""

    def __init__(self, nodes: Sequence[Node], ground: Ground, lease_seconds: float) -> None:
        self.landed: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        """Faults that found nothing to befall, such as a process that was not back yet."""
        self.losses: list[Loss] = []
        self.log: list[str] = []
        self._nodes = nodes
        self._ground = ground
        self._lease = lease_seconds
        self._planned: dict[str, int] = {}
        self._trouble_until = 0.0
        self._troubles = 0
        self._began = time.monotonic()
        self._turns = [asyncio.Lock() for _ in nodes]
        """One fault at a time befalls a process, in the order of the schedule."""

    def occasion(self) -> str:
        """Name what is being done on purpose, if nothing is wrong beside it."""
        if self._troubles or time.monotonic() < self._trouble_until:
            return ""
        return " ".join(self._planned)

    async def run(self, faults: Sequence[Fault], *, one_by_one: bool = False) -> None:
        """Let every fault happen at its time, and end; or none before the one before it ended."""
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for fault in faults:
                await asyncio.sleep(max(0.0, self._began + fault.at - time.monotonic()))
                happening = tasks.create_task(self._happen(fault))
                if one_by_one:
                    await happening

    async def heal(self, members: int) -> None:
        """End every fault, and have at least so many processes."""
        for node in self._nodes:
            node.go_on()
            await node.redis.heal()
            await node.postgres.heal()
        for node in self._nodes:
            if node.pid is None and sum(other.pid is not None for other in self._nodes) < members:
                node.skew_seconds = 0.0
                await node.start()

    async def _happen(self, fault: Fault) -> None:
        """Let a fault happen once those before it that befell the same process have ended."""
        if fault.node is None:
            await self._happen_now(fault)
            return
        async with self._turns[fault.node]:
            await self._happen_now(fault)

    async def _happen_now(self, fault: Fault) -> None:
        planned = fault.kind in ("move", "leave", "join")
        what = fault.kind
        if planned:
            self._planned[what] = self._planned.get(what, 0) + 1
        else:
            self._troubles += 1
        try:
            landed = await getattr(self, f"_{fault.kind}")(fault)
        except Exception as error:
            self.log.append(f"{fault}: {error!r}")
            raise
        finally:
            if planned:
                self._planned[what] -= 1
                self._planned = {name: n for name, n in self._planned.items() if n}
            else:
                self._troubles -= 1
                # For a while after it, what fails may still fail because of it.
                self._trouble_until = time.monotonic() + 2 * self._lease
        (self.landed if landed else self.missed)[what] += 1
        took = time.monotonic() - self._began - fault.at
        self.log.append(f"{fault.at:7.2f} +{took:5.2f} {'' if landed else 'missed '}{fault}")

    def _node(self, fault: Fault) -> Node:
        assert fault.node is not None
        return self._nodes[fault.node]

    async def _serves(self, node: Node) -> bool:
        """Wait for a process that was about to come back."""
        return await eventually(lambda: node.serving)

    async def _holds(self, links: Sequence[Link], fault: Fault) -> bool:
        """Hold up cables of a process until its time is up and something had to wait on each."""
        if not await self._serves(self._node(fault)):
            return False
        await self._note_loss(fault)
        before = [link.held for link in links]
        for link in links:
            link.hold(*fault.flows)
        try:
            await asyncio.sleep(fault.seconds)
            return await eventually(
                lambda: all(link.held > held for link, held in zip(links, before, strict=True))
            )
        finally:
            for link in links:
                await link.heal(loses=fault.loses)

    async def _cuts(self, link: Link, fault: Fault) -> bool:
        """Cut a cable of a process until its time is up and something was turned away."""
        if not await self._serves(self._node(fault)):
            return False
        await self._note_loss(fault)
        before = link.refused
        await link.cut()
        try:
            await asyncio.sleep(fault.seconds)
            return await eventually(lambda: link.refused > before)
        finally:
            await link.heal()

    async def _note_loss(self, fault: Fault) -> None:
        owner = self._node(fault).id
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            rows = await self._ground.fetch_now(OWNED, owner)
            owned = {row["slot"]: row["epoch"] for row in rows}
            if any(slot_of(key) in owned for key in ACCOUNTS):
                self.losses.append(Loss(fault.kind, time.monotonic(), owned))

    # What befalls one process.

    async def _kill(self, fault: Fault) -> bool:
        node = self._node(fault)
        if not await self._serves(node):
            return False
        await self._note_loss(fault)
        await node.kill()
        await node.redis.heal()
        await asyncio.sleep(fault.seconds)
        node.skew_seconds = fault.skew_seconds
        await node.start()
        return True

    async def _strangle(self, fault: Fault) -> bool:
        """Kill a process whose last answers have not left, though what they say is on disk."""
        node = self._node(fault)
        await self._serves(node)
        node.redis.hold("up")
        try:
            await asyncio.sleep(0.5 * self._lease)
            return await self._kill(fault)
        finally:
            await node.redis.heal()

    async def _skew(self, fault: Fault) -> bool:
        return await self._kill(fault)

    async def _pause(self, fault: Fault) -> bool:
        node = self._node(fault)
        if not await self._serves(node):
            return False
        await self._note_loss(fault)
        node.stop()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            node.go_on()
        return True

    async def _cut_redis(self, fault: Fault) -> bool:
        return await self._cuts(self._node(fault).redis, fault)

    async def _cut_postgres(self, fault: Fault) -> bool:
        return await self._cuts(self._node(fault).postgres, fault)

    async def _hold_redis(self, fault: Fault) -> bool:
        return await self._holds([self._node(fault).redis], fault)

    async def _hold_postgres(self, fault: Fault) -> bool:
        return await self._holds([self._node(fault).postgres], fault)

    async def _partition(self, fault: Fault) -> bool:
        node = self._node(fault)
        return await self._holds([node.redis, node.postgres], fault)

    async def _delay(self, fault: Fault) -> bool:
        node = self._node(fault)
        node.redis.delay_seconds = node.postgres.delay_seconds = fault.delay_seconds
        await asyncio.sleep(fault.seconds)
        node.redis.delay_seconds = node.postgres.delay_seconds = 0.0
        return True

    # What befalls everyone.

    async def _redis_restart(self, _: Fault) -> bool:
        await self._ground.restart_redis()
        return True

    async def _redis_flush(self, _: Fault) -> bool:
        await self._ground.flush_redis()
        return True

    async def _postgres_restart(self, _: Fault) -> bool:
        await self._ground.restart_postgres()
        return True

    # What is done on purpose.

    async def _move(self, fault: Fault) -> bool:
        target = self._node(fault)
        if not await self._serves(target):
            return False
        asked = next(node for node in self._nodes if node.serving)
        slot = slot_of(ACCOUNTS[fault.account % len(ACCOUNTS)])
        request = {"do": "move", "slot": slot, "to": target.id}
        until = time.monotonic() + LAND_SECONDS
        while time.monotonic() < until:
            with suppress(OSError, TimeoutError):
                said = await asked.ask(request, LAND_SECONDS)
                if said["told"] == "moved":
                    return True
            await asyncio.sleep(0.2)  # who has just come is not known everywhere yet
        return False

    async def _leave(self, fault: Fault) -> bool:
        node = self._node(fault)
        if not await self._serves(node):
            return False
        return await node.leave(LAND_SECONDS)

    async def _join(self, fault: Fault) -> bool:
        node = self._node(fault)
        if not await eventually(lambda: node.pid is None):
            return False
        await node.start()
        return True


async def eventually(holds: Callable[[], bool]) -> bool:
    """Wait until a condition holds; false when it does not within the time that a fault has."""
    until = time.monotonic() + LAND_SECONDS
    while not holds() and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return holds()
