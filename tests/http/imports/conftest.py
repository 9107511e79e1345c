"""A store with a shop that sold before it was connected, and processes that import what it sold."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import anyio
import orjson
import pytest

from tests.campaigns.sums import wrong_sums
from tests.timing import until
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.connection.messages import Connect
from tolsey.actors.store.deliveries.identity import PURPOSE
from tolsey.actors.store.deliveries.messages import Delivery
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.effects import StoreEffects
from tolsey.actors.store.imports.effects import OrderImportCalls
from tolsey.actors.store.imports.messages import BeginImport, StopImport
from tolsey.actors.store.messages import store
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, ShopSpec
from tolsey.sandbox.commerce.webhooks.order_bodies import order_body
from tolsey.storage.commerce import connections, order_imports
from tolsey.storage.commerce.stores import seal_salt
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.connection import ShopProfile
from tolsey.storage.records.commerce.deliveries import CommerceOrder
from tolsey.storage.records.commerce.imports import ImportState, OrderImport
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

SHOP = "snowdevil.myshopify.com"
STORE = "store_1"
SALT = STORE.ljust(32).encode()
ORDERS = table_of(CommerceOrder)
DAYS = 200
SOLD = 60
AT_ONCE = 7


def comparable(order: CommerceOrder) -> dict[str, Any]:
    """An order but for when it was told: JSON as what it says, amounts without the zeros behind them."""
    parts = orjson.loads(order.parts or "null")
    for line in parts["lines"]:
        line |= {name: Decimal(line[name]) for name in ("price", "discount")}
    for line in parts["shipping"]:
        line["price"] = Decimal(line["price"])
    parts["totalDiscounts"] = Decimal(parts["totalDiscounts"])
    said = asdict(order) | {"metadata": orjson.loads(order.metadata), "parts": parts}
    del said["updated_at"]
    return said


@dataclass
class Shopkeeper:
    """Whoever connected the store, and what its tests ask about it."""

    platform: Platform
    admin: ShopifyAdmin
    database: Database
    vault: Vault

    @asynccontextmanager
    async def process(self, **calls: Any) -> AsyncIterator[Runtime]:
        """Run a process that owns the store."""
        running: list[Runtime] = []

        async def ask(to: ActorId, message: Message[Any]) -> Any:
            return await running[0].ask(to, message)

        async def nobody(_: str) -> None:
            pass

        common = self.reach(ask)
        effects = StoreEffects(**common, events_url="http://127.0.0.1/events", invalidate=nobody)
        imports = OrderImportCalls(**common, orders_at_once=AT_ONCE, **calls)
        journal = Journal(self.database)
        async with Runtime(
            [StoreActor(self.database)],
            journal,
            Outbox(self.database),
            partial(slots.versions, self.database),
            epochs=await slots.claim(self.database, "test"),
            handlers={**effects.handlers(), **imports.handlers()},
            poll_seconds=0.05,
        ) as made:
            running.append(made)
            yield made
        await journal.close()

    def reach(self, ask: Any) -> dict[str, Any]:
        """What calls reach the world with."""
        return {
            "ask": ask,
            "platform": self.admin,
            "database": self.database,
            "vault": self.vault,
            "clock": lambda: datetime.now(UTC),
        }

    def calls(self, runtime: Runtime, **calls: Any) -> OrderImportCalls:
        return OrderImportCalls(**self.reach(runtime.ask), orders_at_once=AT_ONCE, **calls)

    async def begin(self, runtime: Runtime) -> OrderImport:
        return await runtime.ask(store(STORE), BeginImport(user_id="usr_1", at=datetime.now(UTC)))

    async def allow(self, runtime: Runtime) -> None:
        """Let the app read all orders from now on."""
        self.platform.shop(SHOP).scopes = ALL_SCOPES
        body = {"current": [*ALL_SCOPES], "updated_at": datetime.now(UTC).isoformat()}
        await self.deliver(runtime, "app/scopes_update", body)

    async def stopped_after(self, runtime: Runtime, parts: int) -> OrderImport:
        """Connect, and stop the import when so many parts are read, each by a call of its own."""
        self.platform.faults.slow(0.0, times=parts, on="bulk")
        release = self.platform.faults.hold(on="bulk")
        await self.connect(runtime)

        async def is_done() -> bool:
            return (await self.standing()).orders >= parts * AT_ONCE

        await until(is_done)
        stop = StopImport(user_id="usr_1", at=datetime.now(UTC))
        stopped: OrderImport = await runtime.ask(store(STORE), stop)
        release.set()
        return stopped

    async def connect(
        self, runtime: Runtime, scopes: Sequence[str] = ALL_SCOPES, shop: str = SHOP
    ) -> None:
        """Connect the store to a shop, whose app may do so much."""
        self.platform.shop(shop).scopes = tuple(scopes)
        at = datetime.now(UTC)
        token = self.platform.shop(shop).issue_token(self.platform.now()).text
        await runtime.ask(
            store(STORE),
            Connect(
                at=at,
                user_id="usr_1",
                shop=ShopProfile(store_id=STORE, shop_domain=shop, facts_at=at, currency="USD"),
                client_id="sandbox-client",
                access_token=connections.seal_token(self.vault, STORE, token),
                client_secret=connections.seal_secret(self.vault, STORE, "sandbox-secret"),
                scopes=tuple(scopes),
                expires_at=at + timedelta(days=1),
                sealed_salt=seal_salt(self.vault, STORE, SALT),
            ),
        )

    def reading(self, topic: str = "orders/updated") -> Reading:
        at = datetime.now(UTC)
        delivery = Delivery(id=f"{topic} {at}", topic=topic, shop_domain=SHOP, at=at)
        return Reading(STORE, self.vault.subkey(SALT, PURPOSE), delivery)

    async def deliver(self, runtime: Runtime, topic: str, body: dict[str, Any]) -> None:
        await runtime.ask(store(STORE), TOPICS[topic].read(body, self.reading(topic)))

    def body(self, order: Order) -> dict[str, Any]:
        return order_body(self.platform.shop(SHOP), order)

    @property
    def orders(self) -> list[Order]:
        """What the shop sold, the oldest first."""
        return sorted(self.platform.shop(SHOP).orders.values(), key=lambda one: one.created_at)

    async def standing(self) -> OrderImport:
        known = await order_imports.known(self.database, STORE)
        assert known is not None
        assert known.order_import is not None
        return known.order_import

    async def until(self, *states: ImportState) -> OrderImport:
        """Wait until the import is in one of these states."""
        with anyio.fail_after(60):
            while (standing := await self.standing()).state not in states:
                await anyio.sleep(0.02)
        return standing

    async def imported(self) -> dict[int, datetime]:
        rows = await self.database.fetch(
            "SELECT order_id, processed_at FROM commerce_orders WHERE deleted_at IS NULL"
        )
        return {row["order_id"]: row["processed_at"] for row in rows}

    async def check(self, expected: Sequence[Order]) -> None:
        """Every order is there once and as it is at the platform, and every sum is a recount."""
        wanted = {}
        for order in expected:
            message: Any = TOPICS["orders/updated"].read(self.body(order), self.reading())
            wanted[order.id] = comparable(message.order)
        rows = await self.database.fetch(
            "SELECT * FROM commerce_orders WHERE deleted_at IS NULL ORDER BY order_id"
        )
        assert {row["order_id"]: comparable(ORDERS.read(row)) for row in rows} == wanted
        assert await wrong_sums(self.database) == []


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    made = Platform(bulk_polls=0)
    history = make_history(seed=3, days=DAYS, orders=SOLD)
    made.add_shop(ShopSpec(domain=SHOP, orders=history))
    async with made.serve():
        yield made


@pytest.fixture
async def keeper(platform: Platform, database: Database) -> AsyncIterator[Shopkeeper]:
    vault = Vault.from_keys("t1:" + "A" * 43)
    await database.execute("INSERT INTO organizations (id, name) VALUES ('org_1', 'o')")
    await database.execute(
        "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
        " VALUES ($1, 'org_1', 's', $2, now())",
        STORE,
        seal_salt(vault, STORE, SALT),
    )
    async with ShopifyAdmin(platform.url_template) as admin:
        yield Shopkeeper(platform, admin, database, vault)
