"""A campaign against whole services over HTTP, and the verdict on what they acknowledged.

`python -m tests.campaigns.nemesis.campaign SEED SECONDS [PLANTED]` runs one by hand.
"""

import asyncio
import base64
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from tests.campaigns.cluster.campaign import PROGRESS_SECONDS, QUIET_SECONDS, Plan
from tests.campaigns.cluster.ground import Ground, ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.cluster.verdict import SAVED
from tests.campaigns.nemesis.clients import BUYERS, OPERATOR, Clients
from tests.campaigns.nemesis.faults import FLEET, SERVICES, ServiceNemesis, schedule
from tests.campaigns.nemesis.planted import BUGS
from tests.campaigns.nemesis.services import Beats, Service, Setting, other_master
from tests.campaigns.nemesis.verdict import SCHEMA, Times, judged, recorded
from tests.http.people import PASSWORD
from tests.journeys.conftest import SECRET
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

LEASE_SECONDS = 2.0
KINDS = ("read", "grant", "deliver", "found")
"""What clients ask for."""


@dataclass
class Outcome:
    """What a run went through and what was found."""

    seed: int
    seconds: float
    nemesis: ServiceNemesis
    told: Counter[str]
    found: list[Finding]

    def __str__(self) -> str:
        landed = " ".join(f"{kind}={n}" for kind, n in sorted(self.nemesis.landed.items()))
        rules = Counter(finding.rule for finding in self.found)
        answers = "".join(
            f"    {kind}: "
            + " ".join(
                f"{told.removeprefix(kind).strip().replace(' ', ':')}={n}"
                for told, n in self.told.most_common()
                if told.startswith(kind)
            )
            + "\n"
            for kind in KINDS
        )
        return (
            f"nemesis seed={self.seed} seconds={self.seconds:.0f}"
            f" requests={self.told.total()} findings={len(self.found)} {dict(rules) or ''}\n"
            f"  faults {landed} missed={sum(self.nemesis.missed.values())}\n"
            f"  answers\n{answers}"
        )


async def campaign(plan: Plan) -> Outcome:
    """Run one campaign and judge it."""
    keyring = "c1:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    beats = Beats()
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(ground())
        await prepare(base)
        other = await stack.enter_async_context(other_master(base.folder))
        platform = await stack.enter_async_context(platform_of_shops())
        setting = Setting(plan.lease_seconds, keyring, plan.planted, platform.url_template)
        services = [
            Service(place, base, setting, shards=2 if place == FLEET else 1, beats=beats)
            for place in range(SERVICES)
        ]
        for service in services:
            await stack.enter_async_context(service.standing())
        for service in services:
            await service.start()
        clients = Clients(plan.seed, services)
        await clients.enter(stack)
        nemesis = ServiceNemesis(services, base, plan.lease_seconds, other)
        return await _Run(plan, base, services, clients, nemesis).judged(beats)


@asynccontextmanager
async def platform_of_shops() -> AsyncIterator[Platform]:
    """Serve a platform that knows a shop for every buyer."""
    platform = Platform()
    for n in range(BUYERS):
        shop = f"shop-{n}.myshopify.com"
        platform.add_shop(ShopSpec(domain=shop, client_id="client-1", client_secret=SECRET))
    async with platform.serve():
        yield platform


async def prepare(base: Ground) -> None:
    """Have the operator, and the tables that the verdict reads."""
    database = Database(base.database_url)
    await database.open()
    try:
        await administrators.create_administrator(database, OPERATOR, PASSWORD)
    finally:
        await database.close()
    await base.execute(SCHEMA)
    for place in range(SERVICES):
        await base.execute(f"CREATE ROLE n{place} SUPERUSER LOGIN")


@dataclass
class _Run:
    """The time between the first request and the verdict."""

    plan: Plan
    ground: Ground
    services: list[Service]
    clients: Clients
    nemesis: ServiceNemesis

    async def judged(self, beats: Beats) -> Outcome:
        plan, began = self.plan, time.monotonic()
        faults = schedule(plan.seed, plan.seconds, plan.lease_seconds)
        working = asyncio.create_task(self.clients.run())
        watching = asyncio.create_task(self._watch(began))
        try:
            await self.nemesis.run(faults if plan.faults is None else list(plan.faults))
            await asyncio.sleep(max(0.0, began + plan.seconds - time.monotonic()))
            await self.nemesis.heal(SERVICES)
            self.clients.ending = True
            await working
            stuck = await self._quiesce()
        finally:
            watching.cancel()
            working.cancel()
            await asyncio.gather(watching, working, return_exceptions=True)
        times = Times(plan.lease_seconds, beats, self.nemesis.masters)
        found = [*await judged(self.ground, self.clients.model, times), *stuck]
        outcome = Outcome(
            *(plan.seed, time.monotonic() - began, self.nemesis, self.clients.model.told, found)
        )
        if found and not plan.planted:
            self._save(outcome)
        return outcome

    async def _quiesce(self) -> list[Finding]:
        """Wait until all that was acknowledged is there and every service answers for everybody."""
        until = time.monotonic() + QUIET_SECONDS
        while self.clients.model.delivered - await recorded(self.ground):
            if time.monotonic() > until:
                break  # the verdict names what is missing
            await asyncio.sleep(0.1)
        found = []
        for place, service in enumerate(self.services):
            for account in self.clients.accounts:
                while not await self.clients.read(account, place):
                    if time.monotonic() > until:
                        found.append(Finding("stuck", f"{service.name} for {account}"))
                        break
                    await asyncio.sleep(0.1)
        return found

    async def _watch(self, began: float) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            model = self.clients.model
            self.plan.say(
                f"nemesis {time.monotonic() - began:.0f} s: requests={model.told.total()}"
                f" acknowledged={model.acknowledged} deliveries={len(model.delivered)}"
                f" faults={sum(self.nemesis.landed.values())}"
                f" serving={[service.name for service in self.services if service.serving]}"
            )

    def _save(self, outcome: Outcome) -> None:
        """Write down what was found, the faults as they landed, and every log."""
        SAVED.mkdir(parents=True, exist_ok=True)
        path = SAVED / f"nemesis-{outcome.seed}-{time.time_ns()}.txt"
        with path.open("w") as out:
            print(outcome, *outcome.found, *self.nemesis.log, sep="\n", file=out)
        for service in self.services:
            with suppress(OSError):
                service.keep_log(path.with_suffix(f".{service.name}.log"))
        outcome.found.append(Finding("history", str(path)))


def main(seed: str, seconds: str, planted: str = "") -> int:
    """Run a campaign by hand."""
    faults = BUGS[planted].faults if planted else None
    plan = Plan(int(seed), float(seconds), LEASE_SECONDS, planted, print, faults)
    outcome = asyncio.run(campaign(plan))
    print(*outcome.nemesis.log, outcome, *outcome.found[:20], sep="\n")  # noqa: T201 - the figures are what a campaign is for
    return bool(outcome.found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
