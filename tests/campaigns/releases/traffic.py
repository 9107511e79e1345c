"""What clients ask for beside the clients of the nemesis: every topic that a store is told of, and listings."""

import random
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import orjson

from tests.campaigns.nemesis.clients import Account, Clients, done
from tests.journeys.conftest import EVENTS, order_body, signed

SAMPLES = Path(__file__).parents[4] / "shared" / "data" / "commerce" / "webhooks"
TOPICS = (
    *("shop/update", "domains/create", "themes/publish", "products/create", "products/update"),
    *("products/delete", "inventory_levels/update", "customers/create", "customers/update"),
    *("customers/delete", "fulfillments/create", "fulfillments/update", "bulk_operations/finish"),
)
"""Topics of which a documented body is told; those of orders tell of one that was delivered."""
LATER = ("orders/updated", "orders/paid", "orders/fulfilled")


class Traffic(Clients):
    """Everyone who uses the services while releases come and go."""

    listings: dict[Account, str]
    titles: defaultdict[str, set[str]]
    """What each listing was ever asked to be called."""

    async def enter(self, stack: AsyncExitStack) -> None:
        """Sign in as the clients of the nemesis do, and put one business of each up for sale."""
        await super().enter(stack)
        self.told_of: set[str] = set()
        """The deliveries, beside new orders, that were answered with 200."""
        self.listings, self.titles = {}, defaultdict(set)
        for account in self.accounts:
            made = await done(
                *(self._doors[0], "POST", "/api/sell/listings"),
                organizationId=account.organization_id,
                title="A business",
            )
            self.listings[account] = made["id"]

    async def _one(self, account: Account, luck: random.Random) -> None:
        chance = luck.random()
        if chance < 0.5:
            await super()._one(account, luck)
        elif chance < 0.85:
            await self._tell(account, luck)
        else:
            await self._edit(account, luck)

    async def _tell(self, account: Account, luck: random.Random) -> None:
        """Deliver what is not a new order, again until it is taken."""
        delivery, topic = self._name("told"), luck.choice((*TOPICS, *LATER))
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
        for place in self._places(luck):
            answer = await self._attempt(
                *("tell", place, "POST", EVENTS), content=body, headers=headers
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                self.told_of.add(delivery)
                return

    async def _edit(self, account: Account, luck: random.Random) -> None:
        """Call a listing something else."""
        id, title = self.listings[account], self._name("edited")
        self.titles[id].add(title)
        body = orjson.dumps({"title": title})
        for place in self._places(luck):
            answer = await self._attempt(
                *("edit", place, "PATCH", f"/api/sell/listings/{id}"),
                content=body,
                headers={"Content-Type": "application/json"},
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                return
