"""A merchant who launches a store, and what their tests ask about it."""

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import anyio
import httpx

from tests.http.people import Clock
from tests.mcp.tools.two_stores import TwoStores
from tests.timing import until
from tolsey.actors.job.messages import RunNow, job
from tolsey.http.web.context import Service
from tolsey.runtime.ids import new_id
from tolsey.sandbox.commerce.shop.state import Shop

SPEC: dict[str, Any] = {
    "businessName": "Loom & Co",
    "country": "US",
    "industry": "hand-woven blankets",
    "tone": "warm",
    "location": {"name": "Mill", "address1": "1 Weaver St", "city": "Salem", "zip": "97301"},
    "shipping": {"countries": ["US", "CA", "DE"], "flatRate": "6.50", "freeFrom": "80"},
    "products": [{"title": "Blanket", "price": "120", "cost": "70"}],
    "pricing": {"marginPercent": 50, "lowest": "50", "highest": "200"},
}
"""What a merchant tells of a store."""


@dataclass
class Merchant:
    """Somebody with a store, its shop and a browser."""

    two_stores: TwoStores
    shop: Shop
    client: httpx.AsyncClient

    @property
    def store_id(self) -> str:
        return self.two_stores.ann.store_id

    async def launch(self, **spec: Any) -> httpx.Response:
        """Begin the launch."""
        body = {"storeId": self.store_id, "spec": {**SPEC, **spec}, "brandKit": {}}
        return await self.client.post("/api/wizard/store/launch", json=body)

    async def cockpit(self) -> dict[str, Any]:
        """Look at the whole launch."""
        answer = await self.client.get(f"/api/wizard/store/{self.store_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def milestone(self, id: str) -> dict[str, Any]:
        """Look at one milestone."""
        found: dict[str, Any] = next(
            one for one in (await self.cockpit())["milestones"] if one["id"] == id
        )
        return found

    async def until(self, id: str, *states: str) -> dict[str, Any]:
        """Wait until a milestone is in one of these states."""
        found = await self.milestone(id)
        with anyio.move_on_after(120):
            while found["state"] not in states:
                await asyncio.sleep(0.05)
                found = await self.milestone(id)
        assert found["state"] in states, await self.standing()
        return found

    async def until_probed_after(self, moment: str) -> None:
        """Wait for another look at the shop."""

        async def is_done() -> bool:
            return bool((await self.cockpit())["probedAt"] != moment)

        await until(is_done)

    async def standing(self) -> dict[str, tuple[Any, ...]]:
        """Say where each milestone stands, and why."""
        names = ("state", "reason", "detail", "attempts")
        found = (await self.cockpit())["milestones"]
        return {one["id"]: tuple(one[name] for name in names) for one in found}

    async def run(self, skill: str, **more: Any) -> dict[str, Any]:
        """Run a milestone."""
        body = {"storeId": self.store_id, "skill": skill, **more}
        answer = await self.client.post("/api/wizard/skill/run", json=body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def decide(self, milestone: str, action: str, **more: Any) -> httpx.Response:
        """Say something of a milestone."""
        body = {"storeId": self.store_id, "milestone": milestone, "action": action, **more}
        return await self.client.post("/api/wizard/store/checkpoint", json=body)

    async def tick(self) -> dict[str, Any]:
        """Let a tick come, and what it told take place at once."""
        return await tick(self.two_stores.service)

    async def hurry(self) -> None:
        """Let everything that waits for its time be due."""
        await hurry(self.two_stores.service)


async def tick(service: Service) -> dict[str, Any]:
    """Let a tick come to all launches, and what it told them take place at once."""
    # A job has one run for each moment.
    cast("Clock", service.clock).advance(timedelta(minutes=10))
    run = await service.runtime.ask(job("launch-tick"), RunNow(new_id("run"), service.clock()))
    await hurry(service)
    told: dict[str, Any] = json.loads(run.outcome or "{}")
    return told


async def hurry(service: Service) -> None:
    """Let everything that launches wait for be due."""
    await service.database.execute(
        "UPDATE outbox SET due_at = now() WHERE name LIKE '%ContinueLaunch'"
    )
