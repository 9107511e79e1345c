"""Where everything is put together: the one module that knows every concrete class."""

import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import httpx
import structlog
from quart import Blueprint

from tolsey.actors.job.actor import JobActor
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.effects import JobEffects, Progress, Work
from tolsey.actors.job.messages import Tick, job
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.effects import ListingEffects
from tolsey.actors.listing.messages import SyncDue, listing
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.ports import UnsetVectors, Vectors
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.effects import StoreEffects
from tolsey.http import health
from tolsey.http.app import create_app
from tolsey.http.clients.commerce import API_VERSION, ShopifyAdmin
from tolsey.http.clients.vectors import RestVectors
from tolsey.http.context import Service
from tolsey.http.edge import ASGIApp
from tolsey.http.routes import (
    admin,
    auth,
    cron,
    integrations,
    listing_reviews,
    metrics,
    organizations,
    public,
    security,
    sell,
    stores,
)
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.runtime.decision import Tell
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.timers import Timers
from tolsey.settings import Settings
from tolsey.storage import executions, listings, retention, slots
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.embedded import EmbeddedServers
from tolsey.storage.journal import Journal
from tolsey.storage.limits import Limits
from tolsey.storage.migrate import migrate
from tolsey.storage.outbox import Outbox
from tolsey.storage.sealed import Vault
from tolsey.storage.vectors import DatabaseVectors

log = structlog.get_logger()

BLUEPRINTS: Sequence[Blueprint] = (
    health.routes,
    auth.routes,
    organizations.routes,
    stores.routes,
    integrations.routes,
    sell.routes,
    listing_reviews.routes,
    public.routes,
    cron.routes,
    admin.routes,
    metrics.routes,
    security.routes,
)

EVENTS_PATH = "/api/webhooks/commerce/events"


def now() -> datetime:
    """Tell the wall clock's time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Running:
    """A service that runs: what its routes use, and its application for any ASGI server."""

    service: Service
    app: ASGIApp


@asynccontextmanager
async def addresses(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """Give the database's and the cache's address; embedded servers run where none is set."""
    if settings.database_url and settings.redis_url:
        yield settings.database_url, settings.redis_url
        return
    servers = EmbeddedServers(settings.data_dir / "servers")
    await anyio.to_thread.run_sync(servers.__enter__)
    try:
        yield (
            settings.database_url or servers.database_url,
            settings.redis_url or servers.redis_url,
        )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(servers.__exit__, None, None, None)


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    clock: Callable[[], datetime] = now,
    timers: bool = True,
    **runtime_options: Any,
) -> AsyncIterator[Running]:
    """Run the service: servers, migrations, pools, actors and timers, in this order and back."""
    async with AsyncExitStack() as stack:
        database_url, redis_url = await stack.enter_async_context(addresses(settings))
        for name in await migrate(database_url):
            log.info("migration.applied", name=name)
        database = Database(database_url, min_size=2, max_size=20)
        await database.open()
        stack.push_async_callback(database.close)
        cache = Cache(redis_url)
        stack.push_async_callback(cache.close)
        journal = Journal(database)
        stack.push_async_callback(journal.close)
        commerce = ShopifyAdmin(
            settings.commerce_url_template, settings.commerce_api_version or API_VERSION
        )
        stack.push_async_callback(commerce.close)
        vault = (
            Vault.from_keys(settings.encryption_keys)
            if settings.encryption_keys
            else Vault.load_or_create(settings.data_dir)
        )
        parts = Parts(settings, database, vault, commerce, clock)
        owner = f"{socket.gethostname()}:{os.getpid()}"
        runtime = Runtime(
            parts.actors(),
            journal,
            Outbox(database),
            partial(slots.versions, database),
            epochs=await slots.claim(database, owner),
            handlers=parts.handlers(),
            clock=clock,
            **runtime_options,
        )
        parts.runtime.append(runtime)
        await stack.enter_async_context(runtime)
        service = Service(
            settings=settings,
            runtime=runtime,
            database=database,
            cache=cache,
            limits=Limits(cache),
            vault=vault,
            commerce=commerce,
            vectors=await _vectors(stack, settings, database),
            clock=clock,
        )
        receivers = {EVENTS_PATH: CommerceEvents(runtime, parts.directory, clock)}
        app = create_app(service, BLUEPRINTS, receivers)
        if timers:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            await _catch_up(runtime, database, clock)
            fire = partial(_tick, runtime, clock)
            built = {name: known.expression for name, known in JOBS.items() if known.built}
            tasks.start_soon(Timers(built, fire).run)
        yield Running(service, app)


class Parts:
    """The actors and effects of the service, and what they share."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        vault: Vault,
        commerce: ShopifyAdmin,
        clock: Callable[[], datetime],
    ) -> None:
        self.runtime: list[Runtime] = []
        self._settings = settings
        self._database = database
        self._vault = vault
        self._commerce = commerce
        self._clock = clock
        self.directory = ShopDirectory(database, vault, clock)

    def actors(self) -> list[Any]:
        """List the kinds of actor."""
        return [
            StoreActor(self._database),
            OrganizationActor(self._database),
            ListingActor(self._database),
            JobActor(self._database),
        ]

    def handlers(self) -> dict[type[Call], Any]:
        """Say who performs which call."""
        store = StoreEffects(
            ask=self._ask,
            platform=self._commerce,
            database=self._database,
            vault=self._vault,
            clock=self._clock,
            events_url=self._settings.base_url + EVENTS_PATH,
            invalidate=self.directory.invalidate,
        )
        listing_effects = ListingEffects(self._commerce, self._vault, self._database, self._clock)
        jobs = JobEffects(self._work(), self._clock)
        return {**store.handlers(), **listing_effects.handlers(), **jobs.handlers()}

    async def _ask(self, to: ActorId, message: Message[Any]) -> Any:
        return await self.runtime[0].ask(to, message)

    def _work(self) -> Mapping[str, Work]:
        return {
            "sync-verified-revenue": self._sync_verified_revenue,
            "prune-webhook-deliveries": partial(self._prune, retention.WEBHOOK_DELIVERIES),
            "prune-audit-log": partial(self._prune, retention.AUDIT_LOG),
            "retention-sweep": self._sweep,
        }

    async def _sync_verified_revenue(
        self, scheduled_at: datetime, progress: Progress
    ) -> Mapping[str, int]:
        """Tell every listing that wants it to sync, spread over the hour."""
        due = await listings.due_for_sync(self._database)
        told = 0
        for at in range(0, len(due), retention.BATCH):
            part = due[at : at + retention.BATCH]
            tells = [
                Tell(
                    listing(id),
                    SyncDue(scheduled_at),
                    key=f"sync:{id}:{scheduled_at.isoformat()}",
                    due_at=scheduled_at + listings.jitter(id),
                )
                for id in part
            ]
            told += await self.runtime[0].post(tells)
            progress({"listings": len(due), "scheduled": told})
        return {"listings": len(due), "scheduled": told}

    async def _prune(self, sql: str, _: datetime, progress: Progress) -> Mapping[str, int]:
        deleted = 0
        async for count in retention.batches(self._database, sql):
            deleted += count
            progress({"deleted": deleted})
        return {"deleted": deleted}

    async def _sweep(self, _: datetime, progress: Progress) -> Mapping[str, int]:
        swept: dict[str, int] = {}
        for name, sql in retention.SWEPT.items():
            async for count in retention.batches(self._database, sql):
                swept[name] = swept.get(name, 0) + count
            progress(swept)
        return swept


async def _vectors(stack: AsyncExitStack, settings: Settings, database: Database) -> Vectors:
    if settings.vector_url is None:
        return DatabaseVectors(database)
    if settings.vector_token is None:
        return UnsetVectors("VECTOR_TOKEN")
    client = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
    return RestVectors(settings.vector_url, settings.vector_token, client)


async def _tick(runtime: Runtime, clock: Callable[[], datetime], name: str) -> None:
    at = clock()
    due_at = JOBS[name].due_at(at)
    tick = Tick(due_at, new_id("run"), at)
    await runtime.accept(job(name), tick, id=f"tick:{name}:{due_at.isoformat()}")


async def _catch_up(runtime: Runtime, database: Database, clock: Callable[[], datetime]) -> None:
    """Run what came due while no process was there, once; a job that never ran waits its turn."""
    found = await executions.last(database, list(JOBS), trigger="schedule")
    for name, known in JOBS.items():
        last = found[name]
        if known.built and last and last[0].scheduled_at < known.due_at(clock()):
            await _tick(runtime, clock, name)
