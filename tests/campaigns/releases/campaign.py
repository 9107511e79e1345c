"""Two releases of the service side by side under load: one comes, and goes again, and nothing is lost."""

import asyncio
import base64
import io
import os
import subprocess
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
from tests.campaigns.nemesis.campaign import platform_of_shops, prepare
from tests.campaigns.nemesis.faults import SERVICES
from tests.campaigns.nemesis.services import Beats, Service, Setting
from tests.campaigns.nemesis.verdict import Times, judged
from tests.campaigns.releases.traffic import Traffic

BEFORE = "5ee370ba"
"""The commit that resolved "Connections, restarts, releases": the release before this one."""

LEASE_SECONDS = 5.0
LEAVE_SECONDS = 30.0
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
"""Up, as docs/operate/processes.md has it, and back."""

BACK = 7
"""Before this step what waits is named as the release before reads it."""

TOO_EARLY: Steps = (STEPS[0], ((NEW, "2"), (OLD, "1"), (OLD, "1")))
"""The newer form is written while two processes cannot read it."""

RENAMED = "UPDATE {} SET name = split_part(name, '.', 2) WHERE name LIKE '%.%'"
TOLD = """
SELECT delivery_id, (SELECT count(*) FROM audit_log a WHERE a.metadata->>'deliveryId' = delivery_id) AS n
FROM commerce_webhook_events WHERE delivery_id LIKE 'told-%'
"""
TITLES = "SELECT id, title FROM listings"
CROSSED = """
SELECT kind || '.' || message AS name, count(*) AS n FROM actor_journal GROUP BY 1 ORDER BY 1
"""


@dataclass
class Outcome:
    """What was done and found."""

    operations: int
    seconds: float
    told: Counter[str]
    crossed: dict[str, int]
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
    beats, began = Beats(), time.monotonic()
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(ground())
        await prepare(base)
        platform = await stack.enter_async_context(platform_of_shops())
        setting = Setting(LEASE_SECONDS, keyring, "", platform.url_template)
        services = [
            Service(place, base, setting, shards=1, beats=beats) for place in range(SERVICES)
        ]
        code = {OLD: before, NEW: CHECKOUT}
        for service in services:
            service.checkout = before
            await stack.enter_async_context(service.standing())
            await service.start()
        traffic = Traffic(seed, services)
        await traffic.enter(stack)
        working = asyncio.create_task(traffic.run())
        try:
            for number, step in enumerate(steps):
                say(f"step {number}: {step} after {traffic.model.told.total()} operations")
                if number == BACK:
                    for waiting in ("outbox", "dead_letters"):
                        await base.execute(RENAMED.format(waiting))
                for service, (release, form) in zip(services, step, strict=True):
                    wanted = (code[release], form)
                    if (service.checkout, service.wire_form) != wanted:
                        assert await service.leave(LEAVE_SECONDS), service.tail()
                        service.checkout, service.wire_form = wanted
                        await service.start()
                share = operations * (number + 1) // len(steps)
                while traffic.model.told.total() < share:
                    assert not working.done(), working.exception()
                    await asyncio.sleep(0.1)
            traffic.ending = True
            await working
            found = await _judged(base, traffic, services, Times(LEASE_SECONDS, beats, []))
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        crossed = {row["name"]: row["n"] for row in await base.fetch(CROSSED)}
        told = traffic.model.told
        return Outcome(told.total(), time.monotonic() - began, told, crossed, found)


async def _judged(
    base: Ground, traffic: Traffic, services: list[Service], times: Times
) -> list[Finding]:
    """Wait until nothing is left to do, then find what is lost, doubled, buried or still waits."""
    until = time.monotonic() + QUIET_SECONDS
    while await base.count("outbox") and time.monotonic() < until:
        await asyncio.sleep(0.1)
    found = [Finding("waits", str(row)) for row in await base.left() if not row["dead"]]
    found += [Finding("buried", str(row)) for row in await base.left() if row["dead"]]
    found += await judged(base, traffic.model, times)
    taken = {row["delivery_id"]: row["n"] for row in await base.fetch(TOLD)}
    found += [Finding("lost_delivery", one) for one in sorted(traffic.told_of - taken.keys())]
    found += [Finding("double_delivery", f"{one}: {n}") for one, n in taken.items() if n > 1]
    for row in await base.fetch(TITLES):
        if row["title"] not in traffic.titles[row["id"]]:
            found.append(Finding("lost_edit", f"{row['id']} is called {row['title']}"))
    for service in services:
        for event in ("outbox.unread", "bus.unreadable"):
            if service.said(event):
                found.append(Finding("unread", f"{service.name} said {event}"))
    return found
