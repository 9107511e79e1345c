"""Two releases of the service side by side under load: one comes, and goes again, and nothing is lost."""

import asyncio
import base64
import io
import os
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.cluster.campaign import QUIET_SECONDS
from tests.campaigns.cluster.ground import Ground, ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.cluster.processes import CHECKOUT
from tests.campaigns.cluster.verdict import SAVED
from tests.campaigns.nemesis.campaign import prepare
from tests.campaigns.nemesis.faults import SERVICES
from tests.campaigns.nemesis.services import Beats, Service, Setting
from tests.campaigns.nemesis.verdict import Times, judged
from tests.campaigns.releases.outside import outside
from tests.campaigns.releases.traffic import Traffic

BEFORE = "5ee370ba"
"""The commit that resolved "Connections, restarts, releases": the release before this one."""

LEASE_SECONDS = 5.0
LEAVE_SECONDS = 30.0
LIMITS_SECONDS = 2.0
OLD, NEW = "before", "now"

Steps = Sequence[Sequence[tuple[str, str]]]
"""Which release runs at each place, and which form it writes."""

STEPS: Steps = (
    ((OLD, "1"), (OLD, "1"), (OLD, "1")),
    ((NEW, "1"), (OLD, "1"), (OLD, "1")),
    ((NEW, "1"), (NEW, "1"), (OLD, "1")),
    ((NEW, "1"), (NEW, "1"), (NEW, "1")),
    ((NEW, "2"), (NEW, "1"), (NEW, "2")),
    ((NEW, "2"), (NEW, "2"), (NEW, "2")),
    ((NEW, "1"), (NEW, "1"), (NEW, "1")),
    ((NEW, "1"), (OLD, "1"), (OLD, "1")),
    ((OLD, "1"), (OLD, "1"), (OLD, "1")),
)
"""Up, as docs/operate/processes.md has it, and back; then the newer release comes again."""

SHORT: Steps = (STEPS[0], STEPS[1], STEPS[0])
"""One process of the newer release comes and goes."""
AGAIN = (NEW, "1")
"""What runs everywhere in the end: rows that only the newer release knows have waited for it."""

TOO_EARLY: Steps = (STEPS[0], ((NEW, "2"), (OLD, "1"), (OLD, "1")))
"""The newer form is written while two processes cannot read it."""

WAITING = "SELECT key, actor_key, name, last_error FROM outbox"
KNOWN = """
import tolsey.service
from tolsey.runtime.messages import REGISTERED
print(*REGISTERED)
"""
RENAMED = "UPDATE {} SET name = split_part(name, '.', 2) WHERE name LIKE '%.%'"
CROSSED = """
SELECT kind || '.' || message AS name, count(*) AS n FROM actor_journal GROUP BY 1 ORDER BY 1
"""


@dataclass
class Outcome:
    """What was done and found."""

    operations: int
    seconds: float
    told: Counter[str]
    crossed: Counter[str]
    """How often each class of message was taken by its actor."""
    found: list[Finding]

    def __str__(self) -> str:
        answers = " ".join(f"{told.replace(' ', ':')}={n}" for told, n in self.told.most_common())
        names = " ".join(f"{name}={n}" for name, n in self.crossed.items())
        return (
            f"releases operations={self.operations} seconds={self.seconds:.0f}"
            f" findings={len(self.found)}\n  answers {answers}\n  turns {names}"
        )


def code_before(folder: Path) -> Path | None:
    """Take the code of the release before out of the repository; None where it is not there."""
    packed = subprocess.run(
        ["git", "archive", BEFORE],  # noqa: S607 - as developers have it
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    if packed.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def campaign(
    operations: int,
    before: Path,
    *,
    steps: Steps = STEPS,
    seed: int = 1,
    say: Callable[[str], object] = print,
) -> Outcome:
    """Let each step last for its share of the operations, and judge what came of all of them."""
    keyring = "c1:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    beats = Beats()
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(ground())
        await prepare(base)
        others = await stack.enter_async_context(outside(seed))
        setting = Setting(LEASE_SECONDS, keyring, environment=others.environment)
        services = [
            Service(place, base, setting, shards=1, beats=beats) for place in range(SERVICES)
        ]
        for service in services:
            service.checkout = before
            await stack.enter_async_context(service.standing())
            await service.start()
        others.tell([service.port for service in services])
        traffic = Traffic(seed, services, others)
        await traffic.enter(stack)
        await traffic.agents.enter(base, traffic.accounts)
        run = _Run(base, services, traffic, before, Times(LEASE_SECONDS, beats, []), say)
        outcome = await run.judged(operations, steps)
        if outcome.found:
            _keep_logs(services, seed, outcome)
        return outcome


@dataclass
class _Run:
    """The time between the first request and the verdict."""

    ground: Ground
    services: list[Service]
    traffic: Traffic
    before: Path
    times: Times
    say: Callable[[str], object]

    async def judged(self, operations: int, steps: Steps) -> Outcome:
        began = time.monotonic()
        working = asyncio.create_task(self.traffic.run())
        forgetting = asyncio.create_task(_forget_limits(self.ground))
        try:
            for number, step in enumerate(steps):
                self.say(f"step {number}: {step} after {self.done} operations")
                await self._take(step)
                while self.done < operations * (number + 1) // len(steps):
                    assert not working.done(), working.exception()
                    await asyncio.sleep(0.1)
            self.traffic.ending = True
            await working
            seconds = time.monotonic() - began
            found = await self._left_behind() if steps[-1][0][0] == OLD else []
            await self._take([AGAIN] * len(self.services))
            found += await self._found()
        finally:
            for task in (working, forgetting):
                task.cancel()
            await asyncio.gather(working, forgetting, return_exceptions=True)
        crossed = Counter({row["name"]: row["n"] for row in await self.ground.fetch(CROSSED)})
        return Outcome(self.done, seconds, self.traffic.model.told, crossed, found)

    @property
    def done(self) -> int:
        """How many operations were answered, or not."""
        return self.traffic.model.told.total()

    async def _take(self, step: Sequence[tuple[str, str]]) -> None:
        """Replace each process that is to be another, one after the other."""
        code = {OLD: self.before, NEW: CHECKOUT}
        for service, (release, form) in zip(self.services, step, strict=True):
            wanted = (code[release], form)
            if (service.checkout, service.wire_form) == wanted:
                continue
            if release == OLD:  # what waits is named as it reads it (docs/operate/processes.md)
                for waiting in ("outbox", "dead_letters"):
                    await self.ground.execute(RENAMED.format(waiting))
            assert await service.leave(LEAVE_SECONDS), service.tail()
            service.checkout, service.wire_form = wanted
            await service.start()

    async def _left_behind(self) -> list[Finding]:
        """Find what waits at the release before although it knows it."""
        known = await asyncio.to_thread(_known_to, self.before)
        until = time.monotonic() + QUIET_SECONDS
        while True:
            waiting = await self.ground.fetch(WAITING)
            late = [row for row in waiting if row["name"] in known]
            if not late or time.monotonic() > until:
                break
            await asyncio.sleep(0.2)
        names = Counter(row["name"] for row in waiting)
        self.say(f"back: {dict(names) or 'nothing'} waits for the newer release")
        return [Finding("waits", str(dict(row))) for row in late]

    async def _found(self) -> list[Finding]:
        """Wait until nothing is left to do, then find what is lost, doubled, buried or still waits."""
        base, until = self.ground, time.monotonic() + QUIET_SECONDS
        while await base.count("outbox") and time.monotonic() < until:
            await asyncio.sleep(0.1)
        found = [
            Finding("buried" if row["dead"] else "waits", str(row)) for row in await base.left()
        ]
        found += await judged(base, self.traffic.model, self.times)
        for service in self.services:
            # Rows of a class that the release before does not know may wait there, and are told of.
            if service.said("bus.unreadable"):
                found.append(Finding("unread", f"{service.name} could not read a frame"))
        return found + await self.traffic.judged(base)


def _known_to(checkout: Path) -> set[str]:
    """Ask a release which classes of rows it knows."""
    told = subprocess.run(
        [sys.executable, "-c", KNOWN], cwd=checkout, capture_output=True, check=True, text=True
    )
    return set(told.stdout.split())


async def _forget_limits(base: Ground) -> None:
    """Admit everything: few people and one address do what thousands would."""
    while True:
        await base.forget_limits()
        await asyncio.sleep(LIMITS_SECONDS)


def _keep_logs(services: Sequence[Service], seed: int, outcome: Outcome) -> None:
    """Keep what the services have written, beside what was found."""
    SAVED.mkdir(parents=True, exist_ok=True)
    path = SAVED / f"releases-{seed}-{time.time_ns()}.txt"
    path.write_text("\n".join(map(str, [outcome, *outcome.found])))
    for service in services:
        service.keep_log(path.with_suffix(f".{service.name}.log"))
    outcome.found.append(Finding("history", str(path)))
