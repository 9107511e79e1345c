"""Agents that change the stock of their shops, and what the shops have of it."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.nemesis.clients import Account, Clients
from tests.http.oauth.client import Client
from tests.http.people import Person
from tests.mcp.tools.shop import ITEM, PRODUCT, stocked
from tests.mcp.wire import headers_of, message
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID

AGENTS = 4
SCOPES = "store:read inventory:read inventory:write"
IN_STOCK = 10
GIVEN_SECONDS = 120.0
"""A change that a newer release has begun waits for it where only the one before runs, and so does what is
asked for the same item after it: the shop tells in the end."""
DONE = frozenset({"applied", "replayed"})

STORE_OF = "SELECT store_id FROM integration_connections WHERE shop_domain = $1"
UNFINISHED = "SELECT * FROM agent_operations WHERE finished_at IS NULL"


@dataclass
class Agent:
    """One with a token for a store, and how often it was told that the stock grew by one."""

    shop: str
    path: str
    token: str
    asked: int = 0
    done: int = 0


@dataclass
class Agents:
    """All of them, at any of the services."""

    clients: Clients
    platform: Platform
    agents: list[Agent] = field(default_factory=list)

    async def enter(self, ground: Ground, accounts: Sequence[Account]) -> None:
        """Put something on the shelves of some shops, and let an agent in to each."""
        door = self.clients.doors[0]
        for account in accounts[:AGENTS]:
            stocked(self.platform, account.shop)
            ((store_id,),) = await ground.fetch(STORE_OF, account.shop)
            client = Client(door, store_id)
            assert (await client.register()).is_success
            person = Person(door, "", account.organization_id, "")
            token = (await client.tokens(person, scope=SCOPES))["access_token"]
            self.agents.append(Agent(account.shop, urlsplit(client.resource).path, token))

    async def act(self, luck: random.Random) -> None:
        """Let one add a piece to the stock, again under its key until it is told that it has."""
        agent, key = luck.choice(self.agents), self.clients.name("agent")
        wanted = {
            "idempotency_key": f"key-{key}",
            "inventory_item_id": str(ITEM),
            "location_id": str(LOCATION_ID),
            "delta": 1,
        }
        sent = message("tools/call", {"name": "adjust_inventory", "arguments": wanted})
        agent.asked += 1
        until = time.monotonic() + GIVEN_SECONDS
        while time.monotonic() < until:
            answer = await self.clients.attempt(
                *("agent", luck.randrange(len(self.clients.doors)), "POST", agent.path),
                json=sent,
                headers={
                    "Accept": "application/json, text/event-stream",
                    "Authorization": f"Bearer {agent.token}",
                    **headers_of(sent),
                },
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                status = _status(answer.json())
                self.clients.model.told[f"agent {status}"] += 1
                if status in DONE:
                    agent.done += 1
                    return
            await asyncio.sleep(luck.uniform(0.1, 0.5))

    async def judged(self, ground: Ground) -> list[Finding]:
        """Find changes that a shop did not see, or saw twice."""
        found = [Finding("unfinished", str(dict(row))) for row in await ground.fetch(UNFINISHED)]
        for agent in self.agents:
            there = self.platform.shop(agent.shop).products[PRODUCT].variants[0].available
            added = there - IN_STOCK
            if not agent.done <= added <= agent.asked:
                said = f"{agent.done} of {agent.asked} were told to be made"
                found.append(Finding("edits", f"{agent.shop}: {added} more, {said}"))
        return found


def _status(told: dict[str, Any]) -> str:
    """Read what became of a change; a refusal names its code."""
    result = told.get("result", {})
    value: str = result.get("structuredContent", {}).get("status", "refused")
    return value
