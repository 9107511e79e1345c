"""What befalls whole services, beside what befalls the processes of `cluster`."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import redis.asyncio

from tests.campaigns.cluster.faults import GROUND, LINKS, Fault
from tests.campaigns.cluster.ground import Ground, Rows
from tests.campaigns.cluster.nemesis import LAND_SECONDS, Nemesis, eventually
from tests.campaigns.nemesis.services import Service
from tolsey.storage.runtime import commit_statement

SERVICES = 3
FLEET = 0
"""The service of two processes behind one port; a signal to their parent stops neither."""
KINDS = (
    *GROUND,
    *LINKS,
    *("kill", "pause", "cut_clients", "descriptors", "flood", "two_masters", "restarts", "hang_up"),
)
OFTEN = ("kill", "pause", "partition", "descriptors", "two_masters", "restarts")
"""Drawn more often than the others: where safety is won or lost."""
OF_ONE_PROCESS = ("pause", "descriptors")
FLOOD = 200
"""Connections that come and say nothing."""
OWNED = "SELECT slot FROM slot_epochs WHERE split_part(owner, '-', 2) = $1"
COMMITTERS = """
SELECT pid, state_change, state FROM pg_stat_activity
WHERE usename = $1 AND strpos(query, $2) > 0
"""
"""The backends that run the commits of a service: whether they are at work, and since when."""


def schedule(seed: int, seconds: float, lease_seconds: float) -> list[Fault]:
    """Draw the faults of a run: each kind once in some order, then whatever comes up."""
    luck = random.Random(f"services {seed}")  # noqa: S311 - a campaign's luck, not a secret
    owed = list(KINDS)
    luck.shuffle(owed)
    faults: list[Fault] = []
    at = lease_seconds
    while owed or at < seconds - 2 * lease_seconds:
        kind = owed.pop() if owed else luck.choice((*KINDS, *OFTEN))
        others = [n for n in range(SERVICES) if n != FLEET]
        places = [FLEET] if kind == "hang_up" else others
        if kind not in ("hang_up", *OF_ONE_PROCESS):
            places = [FLEET, *others]
        flows: tuple[str, ...] = ("up", "down")
        if kind.startswith("hold"):
            flows = luck.choice((("up", "down"), ("up",), ("down",)))
        faults.append(
            Fault(
                round(at, 3),
                kind,
                None if kind in GROUND else luck.choice(places),
                round(lease_seconds * luck.uniform(1.2, 2.0), 3),
                flows,
                loses=luck.random() < 0.5,
                delay_seconds=round(luck.uniform(0.02, 0.15), 3),
            )
        )
        at += lease_seconds * luck.uniform(0.7, 1.6)
    return faults


class ServiceNemesis(Nemesis):
    """Does to services what a schedule says."""

    def __init__(
        self, services: Sequence[Service], ground: Ground, lease_seconds: float, other: Path
    ) -> None:
        super().__init__(services, ground, lease_seconds)
        self._services = services
        self._other = other
        self.masters: list[tuple[float, float]] = []
        """When there were two Redis masters, by the time of day, and a while after."""

    async def _cut_clients(self, fault: Fault) -> bool:
        return await self._cuts(self._service(fault).front, fault)

    async def _descriptors(self, fault: Fault) -> bool:
        service = self._service(fault)
        if not await self._serves(service):
            return False
        async with service.starved():
            await asyncio.sleep(fault.seconds)
        return True

    async def _flood(self, fault: Fault) -> bool:
        service = self._service(fault)
        if not await self._serves(service):
            return False
        writers = []
        with suppress(OSError):
            for _ in range(FLOOD):
                _, writer = await asyncio.open_connection("127.0.0.1", service.port)
                writers.append(writer)
        await asyncio.sleep(fault.seconds)
        for writer in writers:
            writer.transport.abort()
        return len(writers) > FLOOD // 10

    async def _two_masters(self, fault: Fault) -> bool:
        """Lead one service to another Redis that has all there was until now, then back."""
        service = self._service(fault)
        if not await self._serves(service):
            return False
        await _copy(self._ground.redis_socket, self._other)
        began = time.time()
        await service.redis.redirect(self._other)
        try:
            await asyncio.sleep(2 * fault.seconds)
        finally:
            await service.redis.redirect(self._ground.redis_socket)
            self.masters.append((began, time.time() + 2 * self._lease))
        return True

    async def _restarts(self, fault: Fault) -> bool:
        """Stop and start one service over and over, as a bad roll does."""
        service = self._service(fault)
        for which in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            if not await self._serves(service):
                return False
            if which == signal.SIGKILL:
                await service.kill()
            elif not await service.leave(LAND_SECONDS):
                return False
            await service.start()
        return True

    async def _hang_up(self, fault: Fault) -> bool:
        """Have a fleet replace its processes one after the other."""
        service = self._service(fault)
        if not await self._serves(service):
            return False

        def ended() -> int:
            return service.said("process.stopped") + 2 * service.said("fleet.kept")

        before = ended()
        service.signal(signal.SIGHUP)
        return await eventually(lambda: ended() >= before + 2)

    async def _late_commit(self, fault: Fault) -> bool:
        """Take a service's slots from it while a commit of its is on the way, then let that arrive.

        Nobody else commits in between: what others changed, its versions would not let it overwrite.
        """
        service = self._service(fault)
        if not await self._serves(service):
            return False
        before = service.commits.held
        service.commits.hold()
        try:
            if not await eventually(lambda: service.commits.held > before):
                return False
            # Who sees that PostgreSQL is not at work on its commit, gives it up and ends the backend.
            service.postgres.hold("up")
            for other in self._services:
                other.commits.hold()
            await service.redis.cut()
            owned = partial(self._ground.fetch, OWNED, str(service.pid))
            committers = partial(
                self._ground.fetch, COMMITTERS, service.name, commit_statement.MARK
            )
            if not await _changes(owned, lambda rows: not rows):
                return False
            idle = set(await committers())
            service.commits.let_go()
            return bool(idle) and await _changes(
                committers,
                lambda rows: idle.isdisjoint(rows) and all(row["state"] == "idle" for row in rows),
            )
        finally:
            for one in self._services:
                one.commits.let_go()
            await service.postgres.heal()
            await service.redis.heal()

    def _service(self, fault: Fault) -> Service:
        assert fault.node is not None
        return self._services[fault.node]


async def _copy(source: Path, target: Path) -> None:
    """Give one Redis what another has, as replication does until the moment of a failover."""
    one = redis.asyncio.Redis(unix_socket_path=str(source))
    other = redis.asyncio.Redis(unix_socket_path=str(target))
    async with one, other:
        await other.flushall()
        for key in await one.keys():
            if (value := await one.dump(key)) is not None:
                await other.restore(key, 0, value)


async def _changes(look: Callable[[], Awaitable[Rows]], holds: Callable[[Rows], bool]) -> bool:
    """Look at the disk until a condition holds; false when it does not within the time that a fault has."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAND_SECONDS):
            while not holds(await look()):
                await asyncio.sleep(0.02)
            return True
    return False
