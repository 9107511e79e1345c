"""Ann's shop as an agent may change it: a product with stock, and an order."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]  # it has no types

from tests.mcp.tools.two_stores import SHOPS, TwoStores, connect, result
from tests.mcp.wire import Agent
from tests.timing import until
from tolsey.http.mcp.tools.schemas import answer_schema_of
from tolsey.http.mcp.tools.writes.contract import WriteResult
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, Shop

ANNS, BOBS = SHOPS["ann"], SHOPS["bob"]
SCHEMA = answer_schema_of(WriteResult)
PRODUCT, ITEM = 77, 7700
NOTE = "Jane Doe of 5 Elm Street wants it wrapped"


@dataclass
class Counter:
    """A shop with its agent."""

    two_stores: TwoStores
    platform: Platform
    agent: Agent
    order: Order

    @property
    def shop(self) -> Shop:
        return self.platform.shop(ANNS)

    @property
    def product(self) -> Product:
        return self.shop.products[PRODUCT]

    @property
    def variant(self) -> Variant:
        return self.product.variants[0]

    async def adjust(self, key: str, delta: int, **more: Any) -> dict[str, Any]:
        """Change the stock."""
        return answered(await self.adjusting(key, delta, **more))

    async def adjusting(self, key: str, delta: int, **more: Any) -> httpx.Response:
        return await self.agent.call(
            "adjust_inventory",
            idempotency_key=key,
            inventory_item_id=str(ITEM),
            location_id=str(LOCATION_ID),
            delta=delta,
            **more,
        )

    async def update(self, key: str, **more: Any) -> httpx.Response:
        """Change the product."""
        return await self.agent.call(
            "update_product", idempotency_key=key, product_id=str(PRODUCT), **more
        )

    async def overtaken(
        self, call: Coroutine[Any, Any, httpx.Response], person: Callable[[], object]
    ) -> dict[str, Any]:
        """Let a person do something in the admin while a change is on its way to the platform."""
        before = self.platform.faults.happened
        release = self.platform.faults.hold(on="mutation")
        changing = asyncio.create_task(call)
        await until(lambda: self.platform.faults.happened != before)
        person()
        release.set()
        return answered(await changing)

    async def audited(self) -> list[tuple[str, str | None]]:
        """List the audit rows of agents' calls, oldest first: event and status."""
        rows = await self.two_stores.database.fetch(
            "SELECT event, metadata->>'status' AS status FROM audit_log"
            " WHERE event LIKE 'agent.%' ORDER BY id"
        )
        return [(row["event"], row["status"]) for row in rows]

    async def refusals(self) -> list[tuple[str, str]]:
        """List which tools refused a call, oldest first, and why."""
        rows = await self.two_stores.database.fetch(
            "SELECT metadata->>'tool' AS tool, metadata->>'code' AS code FROM audit_log"
            " WHERE event = 'agent.write.refused' ORDER BY id"
        )
        return [(row["tool"], row["code"]) for row in rows]


def stocked(platform: Platform, domain: str = ANNS) -> None:
    """Put the product on a shop's shelf."""
    now = platform.now()
    product = Product(
        PRODUCT, "Blue shirt", "blue-shirt", now, now, vendor="Loom", tags=("soft", "warm")
    )
    product.variants = [Variant(770, ITEM, "M", "B-M", 1990, available=10, product=product)]
    platform.shop(domain).products[PRODUCT] = product


async def opened(
    two_stores: TwoStores, platform: Platform, scopes: Sequence[str] = (*ALL_SCOPES, *WRITE_SCOPES)
) -> Counter:
    """Connect Ann's store to her shop, and let an agent in."""
    stocked(platform)
    shop = platform.shop(ANNS)
    shop.scopes = tuple(scopes)
    token = shop.issue_token(platform.now())
    await connect(two_stores.service, two_stores.ann, token.text, scopes)
    order = platform.place_order(ANNS, email="jane@example.com")
    return Counter(two_stores, platform, await two_stores.agent(two_stores.ann), order)


def answered(answer: httpx.Response) -> dict[str, Any]:
    """Read what a write answered, whatever became of it."""
    assert answer.status_code == 200, answer.text
    told = answer.json()["result"]
    assert "structuredContent" in told, told
    value: dict[str, Any] = told["structuredContent"]
    jsonschema.validate(value, SCHEMA)
    assert bool(told.get("isError")) == (value["status"] in {"rejected", "unknown"}), told
    return value


async def state_of(counter: Counter, operation_id: str) -> dict[str, Any]:
    """Ask what became of an operation."""
    return result(await counter.agent.call("get_operation", operation_id=operation_id))


async def looked_at_until_over(counter: Counter, operation_id: str) -> dict[str, Any]:
    """Let the waits between the looks be over at once, until nothing more comes."""

    async def find() -> dict[str, Any] | None:
        await counter.two_stores.database.execute(
            "UPDATE outbox SET due_at = now() WHERE name = 'CarryOut'"
        )
        told: dict[str, Any] = await state_of(counter, operation_id)
        return told if "finished_at" in told else None

    return await until(find)
