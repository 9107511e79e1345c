from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest

from tests.campaigns.sums import wrong_sums
from tests.http.webhooks.merchant import NOON, Merchant
from tolsey.actors.ports import CommercePlatform, GrantRefused, SubscriptionReport, TokenGrant
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.effects import StoreEffects
from tolsey.http.privacy.opening import PrivacyRequests
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault


class QuietPlatform:
    """The commerce platform of tests that are about deliveries only."""

    def __init__(self) -> None:
        self.grants = True
        self.asked = 0

    async def exchange(self, *_: object) -> Any:
        self.asked += 1
        if not self.grants:
            raise GrantRefused("app_not_installed", "The application is not installed.")
        return TokenGrant("another token", ("read_orders",), 86_400)

    async def reconcile_subscriptions(self, *_: object) -> Any:
        return SubscriptionReport({"orders/create": "created"})

    async def order(self, _: object, order_id: int) -> dict[str, Any]:
        return {"id": order_id, "name": "#read", "updated_at": "2026-07-02T00:00:00Z"}


@pytest.fixture
def platform() -> QuietPlatform:
    return QuietPlatform()


@pytest.fixture
def vault() -> Vault:
    return Vault.from_keys("t1:" + "A" * 43)


@pytest.fixture
def directory(database: Database, vault: Vault) -> ShopDirectory:
    return ShopDirectory(database, vault, lambda: NOON + timedelta(hours=1))


@pytest.fixture
def running() -> list[Runtime]:
    """Hold the runtime for the effects that ask it; they are made before it is."""
    return []


@pytest.fixture
def effects(
    database: Database,
    vault: Vault,
    directory: ShopDirectory,
    running: list[Runtime],
    platform: QuietPlatform,
) -> StoreEffects:
    async def ask(to: ActorId, message: Message[Any]) -> Any:
        return await running[0].ask(to, message)

    return StoreEffects(
        ask=ask,
        platform=cast("CommercePlatform", platform),
        database=database,
        vault=vault,
        clock=lambda: NOON + timedelta(hours=1),
        events_url="http://127.0.0.1/events",
        invalidate=directory.invalidate,
    )


@pytest.fixture
async def runtime(
    database: Database, effects: StoreEffects, running: list[Runtime]
) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [StoreActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers=effects.handlers(),
    ) as made:
        running.append(made)
        yield made
    await journal.close()


@pytest.fixture
async def merchant(
    vault: Vault, database: Database, runtime: Runtime, directory: ShopDirectory
) -> AsyncIterator[Merchant]:
    """Deliver to a store; whatever came, its kept sums are those of its rows in the end."""
    clock = lambda: NOON + timedelta(hours=1)  # noqa: E731
    requests = PrivacyRequests(database, vault, clock)
    app = CommerceEvents(runtime, directory, requests, clock, body_seconds=0.05)
    yield Merchant(vault, database, runtime, directory, app, requests)
    afterwards = Database(database.dsn)  # a test may have closed its own
    await afterwards.open()
    try:
        assert await wrong_sums(afterwards) == []
    finally:
        await afterwards.close()
