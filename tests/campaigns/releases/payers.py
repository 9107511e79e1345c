"""Organizations that buy plans and credits, change them and get their money back, and what came of it."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.money.disk import read_rows
from tests.campaigns.money.rows import Rows, broken
from tests.campaigns.nemesis.clients import Clients, done
from tests.http.payments.market import Market
from tolsey.storage.database import Database

PAYERS = 12
CADENCE = "monthly"
NEXT = {"free": "pro", "pro": "max_5x", "max_5x": "max_20x"}
LOWER = {"max_5x": "pro", "max_20x": "max_5x"}
CENTS = 5_000
SETTLED_SECONDS = 240.0
"""Longer than a process of the release before waits before it looks for events that nobody applied, and
than a request may be at work under its key."""
REFUSED = frozenset(
    {
        httpx.codes.CONFLICT,
        httpx.codes.PAYMENT_REQUIRED,
        httpx.codes.NOT_FOUND,
        httpx.codes.UNPROCESSABLE_ENTITY,
    }
)
"""Answers that say it was not done and will not be."""
AGAIN = "request_in_progress"

Held = Callable[[str], Awaitable[bool]]
"""Tells whether something that an organization has to do waits for the newer release: a refund that was begun
there goes on there (docs/operate/processes.md), and whoever waits for it waits until that release comes again."""

PLANS = "SELECT id, plan FROM organizations WHERE id = ANY($1)"
UNAPPLIED = "SELECT event_id, type, state, why FROM payment_events WHERE state IN ('new', 'failed')"
HEARD = "SELECT event_id FROM payment_events"
UNFINISHED = "SELECT id, kind, state FROM operations WHERE state = 'running'"


class LongestWait:
    """How long an organization still waits for one thing: so many seconds, and as long again while it is held."""

    def __init__(self, organization_id: str, seconds: float, is_held: Held) -> None:
        self._id = organization_id
        self._seconds = seconds
        self._is_held = is_held
        self._until = time.monotonic() + seconds

    async def allows(self, what: str) -> None:
        """Return while there is some left. Raises TimeoutError."""
        if time.monotonic() >= self._until:
            if not await self._is_held(self._id):
                raise TimeoutError(what)
            self._until = time.monotonic() + self._seconds


@dataclass
class Payer:
    """An organization, and what it has bought as far as it was told."""

    organization_id: str
    plan: str = "free"
    charges: int = 0
    refunds: int = 0
    busy: bool = False
    lost: str = ""
    """What became of nothing in all the time that it had; from then on it buys nothing more."""


@dataclass
class Payers:
    """All of them, each doing one thing at a time at any of the services."""

    clients: Clients
    market: Market
    is_held: Held
    settled_seconds: float = SETTLED_SECONDS
    payers: list[Payer] = field(default_factory=list)

    async def enter(self) -> None:
        """Make their organizations."""
        for n in range(PAYERS):
            made = await done(
                *(self.clients.doors[0], "POST", "/api/organizations"), name=f"Payer {n}"
            )
            self.payers.append(Payer(made["id"]))

    async def act(self, luck: random.Random) -> None:
        """Let one that has nothing to do buy, change or return something."""
        free = [payer for payer in self.payers if not payer.busy and not payer.lost]
        if not free:
            await self._plan(luck.choice(self.payers), luck)
            return
        payer = luck.choice(free)
        payer.busy = True
        try:
            await self._act(payer, luck)
        except TimeoutError as error:
            payer.lost = str(error)
        finally:
            payer.busy = False

    async def _act(self, payer: Payer, luck: random.Random) -> None:
        chance = luck.random()
        if chance < 0.2:
            await self._buy_credits(payer, luck)
        elif payer.plan == "free":
            await self._buy(payer, luck)
        elif chance < 0.45 and payer.plan in LOWER:
            await self._lower_and_keep(payer, luck)
        elif chance < 0.6:
            await self._cancel_and_keep(payer, luck)
        elif chance < 0.8 and payer.plan in NEXT:
            await self._upgrade(payer, luck)
        else:
            await self._refund(payer, luck)

    async def _buy(self, payer: Payer, luck: random.Random) -> None:
        wanted = {"plan": NEXT["free"], "cadence": CADENCE}
        page = await self._asked(payer, luck, "check_out", "/api/payments/checkout", **wanted)
        if page is not None:
            await self.market.pay(page["url"])
            payer.charges += 1
            await self._until(payer, NEXT["free"], luck)

    async def _buy_credits(self, payer: Payer, luck: random.Random) -> None:
        wanted = {"amount": {"amount": CENTS, "currency": "USD"}}
        page = await self._asked(payer, luck, "purchase", "/api/credits/purchase", **wanted)
        if page is not None:
            await self.market.pay(page["url"])
            payer.charges += 1

    async def _upgrade(self, payer: Payer, luck: random.Random) -> None:
        plan = NEXT[payer.plan]
        if await self._change(payer, plan, luck):
            payer.charges += 1
            await self._until(payer, plan, luck)

    async def _lower_and_keep(self, payer: Payer, luck: random.Random) -> None:
        await self._change(payer, LOWER[payer.plan], luck)
        await self._change(payer, payer.plan, luck)

    async def _cancel_and_keep(self, payer: Payer, luck: random.Random) -> None:
        await self._asked(payer, luck, "cancel", "/api/payments/cancel")
        await self._change(payer, payer.plan, luck)

    async def _change(self, payer: Payer, plan: str, luck: random.Random) -> bool:
        wanted = {"plan": plan, "cadence": CADENCE}
        return bool(await self._asked(payer, luck, "change", "/api/payments/change", **wanted))

    async def _refund(self, payer: Payer, luck: random.Random) -> None:
        """Give the newest payment back; a plan ends with its own."""
        reference = await self._newest(payer, luck)
        if reference is None:
            return
        wanted = {"paymentRef": reference, "reason": "a campaign"}
        if await self._asked(payer, luck, "refund", "/api/admin/refunds", **wanted):
            payer.refunds += 1
            if reference.startswith("in_"):
                await self._until(payer, "free", luck)

    async def _newest(self, payer: Payer, luck: random.Random) -> str | None:
        path = f"/api/credits?organizationId={payer.organization_id}"
        for place in self.clients.places(luck):
            answer = await self.clients.attempt("credits", place, "GET", path)
            if answer is not None and answer.is_success:
                paid = [one for one in answer.json()["grants"] if one["reference"]]
                return max(paid, key=lambda one: one["grantedAt"])["reference"] if paid else None
        return None

    async def _plan(self, payer: Payer, luck: random.Random) -> str | None:
        path = f"/api/payments/subscription?organizationId={payer.organization_id}"
        place = luck.randrange(len(self.clients.doors))
        answer = await self.clients.attempt("plan", place, "GET", path)
        return answer.json()["plan"] if answer is not None and answer.is_success else None

    def _wait(self, payer: Payer) -> LongestWait:
        return LongestWait(payer.organization_id, self.settled_seconds, self.is_held)

    async def _until(self, payer: Payer, plan: str, luck: random.Random) -> None:
        """Wait until the processor's word has come round. Raises TimeoutError."""
        wait = self._wait(payer)
        while await self._plan(payer, luck) != plan:
            await wait.allows(f"{payer.organization_id} is not on {plan}")
            await asyncio.sleep(luck.uniform(0.2, 0.6))
        payer.plan = plan

    async def _asked(
        self, payer: Payer, luck: random.Random, what: str, path: str, **body: Any
    ) -> dict[str, Any] | None:
        """Ask for one thing until it is done or refused. Raises TimeoutError."""
        key, wait = self.clients.name(what), self._wait(payer)
        while True:
            answer = await self.clients.attempt(
                *(what, luck.randrange(len(self.clients.doors)), "POST", path),
                json={"organizationId": payer.organization_id, **body},
                headers={"Idempotency-Key": key},
            )
            if answer is not None and answer.is_success:
                return dict(answer.json())
            if answer is not None and _is_refused(answer):
                return None
            await wait.allows(f"{key} of {payer.organization_id} is not answered")
            await asyncio.sleep(luck.uniform(0.2, 1.0))

    # What came of it.

    async def judged(self, ground: Ground) -> list[Finding]:
        """Find money that was taken or returned twice or not at all, and what was not applied."""
        await self.market.processor.webhooks.settled()
        until = time.monotonic() + self.settled_seconds
        while await ground.fetch(UNAPPLIED) or await ground.fetch(UNFINISHED):
            if time.monotonic() > until:
                break
            await asyncio.sleep(0.1)
        found = [Finding("unapplied", str(dict(row))) for row in await ground.fetch(UNAPPLIED)]
        found += [Finding("unfinished", str(dict(row))) for row in await ground.fetch(UNFINISHED)]
        found += [Finding("stuck", payer.lost) for payer in self.payers if payer.lost]
        heard = {row["event_id"] for row in await ground.fetch(HEARD)}
        told = {one.event_id for one in self.market.processor.webhooks.log if one.accepted}
        found += [Finding("phantom_event", id) for id in heard - told]
        database = Database(ground.database_url)
        await database.open()
        try:
            books = await read_rows(database, [one.organization_id for one in self.payers])
        finally:
            await database.close()
        ids = [one.organization_id for one in self.payers]
        kept = {row["id"]: row["plan"] for row in await ground.fetch(PLANS, ids)}
        charges, refunds, plans = self._at_the_processor()
        for payer in self.payers:
            id = payer.organization_id
            found += _counted("charge", id, charges[id], payer)
            found += _counted("refund", id, refunds[id], payer)
            if plans.get(id, "free") != kept[id]:
                found.append(Finding("wrong_plan", f"{id}: {plans.get(id)} is not {kept[id]}"))
            found += [Finding("books", f"{id}: {one}") for one in broken(books[id])]
            found += _granted(id, books[id], charges[id])
        return found

    def _at_the_processor(self) -> tuple[Counter[str], Counter[str], dict[str, str]]:
        """Count what was collected and returned of each, and name the plan it pays for."""
        market, owners = self.market, {}
        names = {id: name for name, id in market.prices.items()}
        plans = {}
        for kind in ("subscription", "payment_intent"):
            for one in market.made(kind):
                if id := one["metadata"].get("org_id"):
                    owners[one["id"]] = id
                    owners.setdefault(one["customer"], id)
                if kind == "subscription" and one["status"] == "active":
                    (item,) = one["items"]["data"]
                    plans[id] = _plan_of(names[item["price"]["id"]])
        charges, refunds = Counter[str](), Counter[str]()
        of_charge = {}
        for one in market.made("charge"):
            owner = owners.get(one["payment_intent"]) or owners[one["customer"]]
            of_charge[one["id"]] = owner
            charges[owner] += one["paid"]
        for one in market.made("refund"):
            refunds[of_charge[one["charge"]]] += 1
        return charges, refunds, plans


def _plan_of(setting: str) -> str:
    """Name the plan of a price's variable."""
    short = setting.removeprefix("PAYMENTS_PRICE_").partition("_")[0].lower()
    return {"pro": "pro", "max5": "max_5x", "max20": "max_20x"}[short]


def _is_refused(answer: httpx.Response) -> bool:
    return answer.status_code in REFUSED and answer.json().get("code") != AGAIN


def _counted(what: str, id: str, there: int, payer: Payer) -> Iterator[Finding]:
    """Compare with what was asked for; of who was not answered the last may or may not be there."""
    asked = {"charge": payer.charges, "refund": payer.refunds}[what]
    if there > asked + bool(payer.lost):
        yield Finding(f"double_{what}", f"{id}: {there} of {asked}")
    elif there < asked:
        yield Finding(f"lost_{what}", f"{id}: {there} of {asked}")


def _granted(id: str, rows: Rows, charges: int) -> Iterator[Finding]:
    """Every payment that was collected has granted something, once."""
    granted = sum(one.granted_at is not None for one in rows.payments)
    if granted != charges:
        yield Finding("lost_grant", f"{id}: {granted} payments granted, {charges} were collected")
