"""Two releases of the service side by side under load: one comes, and goes again, and nothing is lost."""

import asyncio
import base64
import io
import math
import os
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
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
from tests.campaigns.releases.crossings import Crossings
from tests.campaigns.releases.outside import outside
from tests.campaigns.releases.payers import SETTLED_SECONDS
from tests.campaigns.releases.traffic import Traffic

BEFORE = "5ee370ba"
"""The commit that resolved "Connections, restarts, releases": the release before this one."""

LEASE_SECONDS = 5.0
LEAVE_SECONDS = 30.0
LIMITS_SECONDS = 2.0
PROGRESS_SECONDS = 20.0
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
UP: Steps = (STEPS[0], STEPS[3])
"""The newer release comes, everywhere, and stays."""
AGAIN = (NEW, "1")
"""What runs everywhere in the end: rows that only the newer release knows have waited for it."""

TOO_EARLY: Steps = (STEPS[0], ((NEW, "2"), (OLD, "1"), (OLD, "1")))
"""The newer form is written while two processes cannot read it."""

LOST_REFUNDS = """
CREATE FUNCTION lose_refund() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER lose_refund BEFORE INSERT ON outbox
FOR EACH ROW WHEN (NEW.name LIKE '%RefundPayment') EXECUTE FUNCTION lose_refund()
"""
"""A planted bug: what the processor is to be asked for a refund is nowhere, and nothing waits for any release."""

WAITING = "SELECT key, actor_key, name, last_error FROM outbox"
KNOWN = """
import tolsey.service
from tolsey.runtime.messages import REGISTERED
print(*REGISTERED)
"""
RENAMED = "UPDATE {} SET name = split_part(name, '.', 2) WHERE name LIKE '%.%'"
TAKEN = """
SELECT kind || '.' || message AS name, count(*) AS n FROM actor_journal GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A process that gave way to another under load."""

    service: str
    was: str
    becomes: str
    """The releases, and the forms that they write."""
    under_way: int
    """How many operations were as it was told to leave."""
    ended: int
    """How many came to their end, anywhere, until the next one served."""
    seconds: float

    def found(self) -> Iterator[Finding]:
        """A release that comes or goes while nothing is asked for proves nothing."""
        if not (self.under_way and self.ended):
            yield Finding("idle", str(self))


@dataclass
class Outcome:
    """What was done and found."""

    operations: int
    seconds: float
    told: Counter[str]
    taken: Counter[str]
    """How often each class of message was taken by its actor and written down."""
    crossed: Counter[tuple[str, str, str]]
    """How often each class went from a process of one release to one of the other."""
    replaced: list[Replaced]
    found: list[Finding]

    def __str__(self) -> str:
        answers = " ".join(f"{told.replace(' ', ':')}={n}" for told, n in self.told.most_common())
        names = " ".join(f"{name}={n}" for name, n in self.taken.items())
        crossings = "".join(
            f"\n  {sender} to {receiver} "
            + " ".join(f"{at[2]}={n}" for at, n in sorted(self.crossed.items()) if at[0] == sender)
            for sender, receiver in ((OLD, NEW), (NEW, OLD))
        )
        return (
            f"releases operations={self.operations} seconds={self.seconds:.0f}"
            f" findings={len(self.found)} {meanwhile(self.replaced)}"
            f"\n  answers {answers}\n  turns {names}{crossings}"
        )


def meanwhile(replaced: Sequence[Replaced]) -> str:
    """Say how much was asked for while processes were replaced."""
    return (
        f"replaced={len(replaced)}"
        f" under_way_then={min((one.under_way for one in replaced), default=0)}"
        f"..{max((one.under_way for one in replaced), default=0)}"
        f" ended_meanwhile={sum(one.ended for one in replaced)}"
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
        # Older releases of Python 3.11 take no argument for it (tarfile, "Supporting older Python versions").
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)  # noqa: S202 - our own code
    # The release before shows its API with what this one does not install any more; nobody asks for that here.
    (folder / "swagger_ui_bundle.py").write_text("swagger_ui_path = None\n")
    return folder


async def campaign(
    operations: int,
    before: Path,
    *,
    steps: Steps = STEPS,
    seed: int = 1,
    say: Callable[[str], object] = print,
    planted: str = "",
    settled_seconds: float = SETTLED_SECONDS,
) -> Outcome:
    """Let each step last for its share of the operations, and judge what came of all of them.

    A bug is `planted` by SQL.
    """
    keyring = "c1:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    beats = Beats()
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(ground())
        await prepare(base)
        if planted:
            await base.execute(planted)
        others = await stack.enter_async_context(outside(seed))
        setting = Setting(LEASE_SECONDS, keyring, environment=others.environment, is_direct=True)
        services = [
            Service(place, base, setting, shards=1, beats=beats) for place in range(SERVICES)
        ]
        crossings = Crossings(keyring, lambda service: OLD if service.checkout == before else NEW)
        for service in services:
            service.checkout = before
            crossings.watch(service)
            await stack.enter_async_context(service.standing())
            await service.start()
        others.tell([service.port for service in services])
        known = await asyncio.to_thread(_known_to, before)
        run = _Run(base, services, crossings, before, known, Times(LEASE_SECONDS, beats, []), say)
        traffic = run.traffic = Traffic(seed, services, others, run.is_held)
        traffic.payers.settled_seconds = settled_seconds
        await traffic.enter(stack)
        await traffic.agents.enter(base, traffic.accounts)
        outcome = await run.judged(operations, steps)
        if outcome.found:
            _keep_logs(services, seed, outcome)
        return outcome


@dataclass
class _Run:
    """The time between the first request and the verdict."""

    ground: Ground
    services: list[Service]
    crossings: Crossings
    before: Path
    known: set[str]
    """Which classes of rows the release before knows."""
    times: Times
    say: Callable[[str], object]
    traffic: Traffic = field(init=False)
    replaced: list[Replaced] = field(default_factory=list)

    async def judged(self, operations: int, steps: Steps) -> Outcome:
        began = shown = time.monotonic()
        working = asyncio.create_task(self.traffic.run())
        forgetting = asyncio.create_task(_forget_limits(self.ground))
        try:
            for number, step in enumerate(steps):
                self.say(f"step {number}: {step} after {self.done} operations")
                await self._take(step)
                while self.done < operations * (number + 1) // len(steps):
                    if working.done():
                        await working  # it has failed: nobody told it to end
                    if time.monotonic() - shown > PROGRESS_SECONDS:
                        shown = time.monotonic()
                        self.say(f"  {self.done:,} of {operations:,}, {shown - began:.0f} s")
                    await asyncio.sleep(0.1)
            self.traffic.ending = True
            seconds = time.monotonic() - began
            found = await self._left_behind() if steps[-1][0][0] == OLD else []
            await self._take([AGAIN] * len(self.services))
            await working  # what waited for the newer release has it again
            found += await self._found()
        finally:
            for task in (working, forgetting):
                task.cancel()
            await asyncio.gather(working, forgetting, return_exceptions=True)
        taken = Counter({row["name"]: row["n"] for row in await self.ground.fetch(TAKEN)})
        for one in self.replaced:
            found += one.found()
        crossed = self.crossings.between_releases
        answers = self.traffic.model.told
        return Outcome(self.done, seconds, answers, taken, crossed, self.replaced, found)

    @property
    def done(self) -> int:
        """How many operations came to their end."""
        return self.traffic.operations

    async def is_held(self, actor_key: str) -> bool:
        """Whether something for an actor waits for the newer release, while the one before runs, too."""
        if all(service.checkout != self.before for service in self.services):
            return False
        waiting = await self.ground.fetch(WAITING)
        return actor_key in {
            row["actor_key"] for row in waiting if not is_known(row["name"], self.known)
        }

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
            was = self._standing(service)
            began, done, under_way = time.monotonic(), self.done, self.traffic.under_way
            assert await service.leave(LEAVE_SECONDS), service.tail()
            service.checkout, service.wire_form = wanted
            await service.start()
            if not self.traffic.ending:
                took = round(time.monotonic() - began, 1)
                ended = self.done - done
                self.replaced.append(
                    Replaced(service.name, was, self._standing(service), under_way, ended, took)
                )

    def _standing(self, service: Service) -> str:
        release = OLD if service.checkout == self.before else NEW
        return f"{release} {service.wire_form}"

    async def _left_behind(self) -> list[Finding]:
        """Find what waits at the release before although it knows it."""
        fewest, until = math.inf, 0.0
        while True:
            waiting = await self.ground.fetch(WAITING)
            late = [row for row in waiting if is_known(row["name"], self.known)]
            # That release tries what a sender told in any order and takes the earliest: the rest goes one by one.
            if len(late) < fewest:
                fewest, until = len(late), time.monotonic() + QUIET_SECONDS
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


def is_known(name: str, known: Container[str]) -> bool:
    """Whether a release that knows these classes knows that of a row, in whichever form its name was written."""
    return name.rpartition(".")[2] in known


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
