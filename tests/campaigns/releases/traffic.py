"""What clients ask for beside the clients of the nemesis: every topic that a store is told of, listings,
what is paid, the chat, and agents."""

import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import orjson

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.nemesis.clients import Account, Clients, done
from tests.campaigns.nemesis.services import Service
from tests.campaigns.releases.agents import Agents
from tests.campaigns.releases.outside import Outside
from tests.campaigns.releases.payers import Payers
from tests.campaigns.releases.talkers import Talkers
from tests.journeys.conftest import EVENTS, order_body, signed

SAMPLES = Path(__file__).parents[4] / "shared" / "data" / "commerce" / "webhooks"
TOPICS = (
    *("shop/update", "domains/create", "themes/publish", "products/create", "products/update"),
    *("products/delete", "inventory_levels/update", "customers/create", "customers/update"),
    *("customers/delete", "fulfillments/create", "fulfillments/update", "bulk_operations/finish"),
)
"""Topics of which a documented body is told; those of orders tell of one that was delivered."""
LATER = ("orders/updated", "orders/paid", "orders/fulfilled")

TAKEN = """
SELECT delivery_id, (SELECT count(*) FROM audit_log a WHERE a.metadata->>'deliveryId' = delivery_id) AS n
FROM commerce_webhook_events WHERE delivery_id LIKE 'told-%'
"""
TITLES = "SELECT id, title FROM listings"


class Traffic(Clients):
    """Everyone who uses the services while releases come and go."""

    count = 32

    def __init__(self, seed: int, services: Sequence[Service], others: Outside) -> None:
        super().__init__(seed, services)
        self.told_of: set[str] = set()
        """The deliveries, beside new orders, that were answered with 200."""
        self.listings: dict[Account, str] = {}
        self.titles: defaultdict[str, set[str]] = defaultdict(set)
        """What each listing was ever asked to be called."""
        self.payers = Payers(self, others.market)
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

    async def _one(self, account: Account, luck: random.Random) -> None:
        chance = luck.random()
        if chance < 0.45:
            await super()._one(account, luck)
        elif chance < 0.7:
            await self._tell(account, luck)
        elif chance < 0.85:
            await self.payers.act(luck)
        elif chance < 0.9:
            await self.talkers.ask(luck)
        elif chance < 0.95:
            await self.agents.act(luck)
        else:
            await self._edit(account, luck)

    async def _tell(self, account: Account, luck: random.Random) -> None:
        """Deliver what is not a new order, again until it is taken."""
        delivery, topic = self.name("told"), luck.choice((*TOPICS, *LATER))
        shop = account.shop
        if topic in TOPICS:
            body = (SAMPLES / f"{topic.replace('/', '__')}.json").read_bytes()
        else:
            known = [one for one in self._past if f"delivery-{one[1]}" in self.model.delivered]
            if not known:
                return
            shop, number = luck.choice(known[-50:])
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
