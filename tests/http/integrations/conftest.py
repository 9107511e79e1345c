from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.http.people import KEYRING, Clock
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.effects import StoreEffects
from tolsey.http.app import create_app
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.people import auth
from tolsey.http.stores import integrations
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.runtime.clock import Time
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault

SHOP = "demo.myshopify.com"


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    """Serve a commerce platform with one shop on loopback."""
    made = Platform()
    made.add_shop(
        ShopSpec(
            domain=SHOP, client_id="app", client_secret="secret", currency="EUR",
            scopes=("read_orders", "read_products"),
        )
    )  # fmt: skip
    async with made.serve():
        yield made


@pytest.fixture
async def commerce(platform: Platform) -> AsyncIterator[ShopifyAdmin]:
    async with ShopifyAdmin(platform.url_template) as client:
        yield client


@pytest.fixture
async def runtime(
    database: Database, commerce: ShopifyAdmin, clock: Clock
) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    vault = Vault.from_keys(KEYRING)
    made: list[Runtime] = []

    async def ask(to: ActorId, message: Message[Any]) -> Any:
        return await made[0].ask(to, message)

    effects = StoreEffects(
        ask=ask,
        platform=commerce,
        database=database,
        vault=vault,
        clock=clock,
        events_url="https://shop.example/api/webhooks/commerce/events",
        invalidate=ShopDirectory(database, vault).invalidate,
    )
    async with Runtime(
        [OrganizationActor(database), StoreActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers=effects.handlers(),
        time=Time(clock),
    ) as running:
        made.append(running)
        yield running
    await journal.close()


@pytest.fixture
def edge(service: Service, commerce: ShopifyAdmin) -> Edge:
    connected = replace(service, commerce=commerce)
    return create_app(connected, [auth.routes, stores.routes, integrations.routes], {})
