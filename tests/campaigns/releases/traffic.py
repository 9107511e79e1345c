"""What clients ask for beside the clients of the nemesis: every topic that a store is told of, listings,
what is paid, the chat, and agents."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import httpx
import orjson

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.nemesis.clients import REMEMBERED, Account, Clients, done
from tests.campaigns.nemesis.services import BASE, Service
from tests.campaigns.releases.agents import Agents
from tests.campaigns.releases.outside import Outside
from tests.campaigns.releases.payers import Held, Payers
from tests.campaigns.releases.pipes import Pipes
from tests.campaigns.releases.talkers import Talkers
from tests.journeys.canary.spelling import DELIVERIES
from tests.journeys.conftest import EVENTS, order_body, signed

TOPICS = (
    *("shop/update", "domains/create", "themes/publish", "products/create", "products/update"),
    *("products/delete", "inventory_levels/update", "customers/create", "customers/update"),
    *("customers/delete", "fulfillments/create", "fulfillments/update", "bulk_operations/finish"),
)
"""Topics whose bodies are those of the canaries; those of orders tell of one that was delivered."""
BODIES = {topic: orjson.dumps(body) for topic, body in DELIVERIES if topic in TOPICS}
LATER = ("orders/updated", "orders/paid", "orders/fulfilled")

PATIENCE = 10.0
"""So many seconds a client waits for an answer."""

PAYING, TALKING, EDITING = (0.01, 8), (0.005, 3), (0.005, 4)
"""What share of all operations these are, and how many are under way at once: they take seconds each."""

TAKEN = """
SELECT delivery_id, coalesce(a.n, 0) AS n FROM commerce_webhook_events LEFT JOIN (
    SELECT metadata->>'deliveryId' AS delivery_id, count(*) AS n FROM audit_log GROUP BY 1
) a USING (delivery_id)
WHERE delivery_id LIKE 'told-%'
"""
TITLES = "SELECT id, title FROM listings"


class Traffic(Clients):
    """Everyone who uses the services while releases come and go."""

    count = 48

    def __init__(
        self, seed: int, services: Sequence[Service], others: Outside, is_held: Held
    ) -> None:
        super().__init__(seed, services)
        self.operations = 0
        """How much was asked for and has come to its end; what is asked again is asked once."""
        self.under_way = 0
        """How much was asked for and has not."""
        self.told_of: set[str] = set()
        """The deliveries, beside new orders, that were answered with 200."""
        self._pipes: list[Pipes] = []
        self.listings: dict[Account, str] = {}
        self.titles: defaultdict[str, set[str]] = defaultdict(set)
        """What each listing was ever asked to be called."""
        self.payers = Payers(self, others.market, is_held)
        self.talkers = Talkers(self)
        self.agents = Agents(self, others.platform)

    async def enter(self, stack: AsyncExitStack) -> None:
        """Sign in as the clients of the nemesis do, and put one business of each up for sale."""
        await super().enter(stack)
        await self.payers.enter()
        await self.talkers.enter()
        for account in self.accounts:
            made = await done(
                *(self.doors[0], "POST", "/api/sell/listings"),
                organizationId=account.organization_id,
                title="A business",
            )
            self.listings[account] = made["id"]
            self.titles[made["id"]].add("A business")  # some are edited in no short run
        cookies = "; ".join(f"{one.name}={one.value}" for one in self.doors[0].cookies.jar)
        for service in self._services:
            pipes = Pipes(service.door, {"Origin": BASE, "Cookie": cookies}, seconds=PATIENCE)
            self._pipes.append(await stack.enter_async_context(pipes.standing()))

    async def request(self, place: int, method: str, path: str, **request: Any) -> httpx.Response:
        """Ask over a connection that is kept for many."""
        return await self._pipes[place].request(method, path, **request)

    async def run(self) -> None:
        """Let all work until told to end: what is rare and slow keeps nobody from what is neither."""
        seldom = (
            (self.payers.act, *PAYING),
            (self.talkers.ask, *TALKING),
            (self.agents.act, *EDITING),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run())
            for act, share, at_once in seldom:
                tasks.create_task(self._seldom(act, share, at_once))

    async def _seldom(
        self, act: Callable[[random.Random], Awaitable[None]], share: float, at_once: int
    ) -> None:
        """Let so many at once do one thing whenever fewer than its share of all operations were that."""
        done = 0

        async def one(luck: random.Random) -> None:
            nonlocal done
            while not self.ending:
                if done < share * self.operations:
                    done += 1
                    with self._counted():
                        await act(luck)
                else:
                    await asyncio.sleep(luck.uniform(0.05, 0.2))

        async with asyncio.TaskGroup() as tasks:
            for n in range(at_once):
                seed = f"{act.__qualname__} {n} {self.seed}"
                tasks.create_task(one(random.Random(seed)))  # noqa: S311 - as in `cluster`

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count one operation: while it is under way, then as one that has ended."""
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1
        self.operations += 1

    async def _one(self, account: Account, luck: random.Random) -> None:
        with self._counted():
            await self._frequent(account, luck)

    async def _frequent(self, account: Account, luck: random.Random) -> None:
        chance = luck.random()
        if chance < 0.35:
            await self._deliver(account.shop, luck)
        elif chance < 0.5:
            await self._tell(account, luck)
        elif chance < 0.8:
            await self.read(account, luck.randrange(len(self.doors)))
        elif chance < 0.92:
            await self._grant(account, luck)
        elif chance < 0.99:
            await self._edit(account, luck)
        else:
            await self._found(luck)

    async def _tell(self, account: Account, luck: random.Random) -> None:
        """Deliver what is not a new order, again until it is taken."""
        delivery, shop = self.name("told"), account.shop
        past = self._past[-REMEMBERED:]
        known = [one for one in past if f"delivery-{one[1]}" in self.model.delivered]
        topic = luck.choice((*TOPICS, *LATER) if known else TOPICS)
        if topic in TOPICS:
            body = BODIES[topic]
        else:
            shop, number = luck.choice(known)
            body = order_body(number, updated_at="2026-07-02T10:00:00-04:00")
        headers = signed(body, topic, shop=shop, delivery_id=delivery)
        for place in self.places(luck):
            answer = await self.attempt(
                *("tell", place, "POST", EVENTS), content=body, headers=headers
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                self.told_of.add(delivery)
                return

    async def _edit(self, account: Account, luck: random.Random) -> None:
        """Call a listing something else."""
        id, title = self.listings[account], self.name("edited")
        self.titles[id].add(title)
        body = orjson.dumps({"title": title})
        for place in self.places(luck):
            answer = await self.attempt(
                *("edit", place, "PATCH", f"/api/sell/listings/{id}"),
                content=body,
                headers={"Content-Type": "application/json"},
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                return

    async def judged(self, ground: Ground) -> list[Finding]:
        """Find what of this was lost or took effect twice."""
        taken = {row["delivery_id"]: row["n"] for row in await ground.fetch(TAKEN)}
        found = [Finding("lost_delivery", one) for one in sorted(self.told_of - taken.keys())]
        found += [Finding("double_delivery", f"{one}: {n}") for one, n in taken.items() if n > 1]
        for row in await ground.fetch(TITLES):
            if row["title"] not in self.titles[row["id"]]:
                found.append(Finding("lost_edit", f"{row['id']} is called {row['title']}"))
        for who in (self.payers, self.talkers, self.agents):
            found += await who.judged(ground)
        return found
