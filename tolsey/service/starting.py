"""Where everything is put together: `running` starts the service, and ends it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import structlog

from tolsey.actors.listing.deals.messages import DrawUpNda
from tolsey.actors.listing.messages import listing
from tolsey.adapters import adapters
from tolsey.http.app import create_app
from tolsey.http.assistant.tools import tools_of
from tolsey.http.blueprints import BLUEPRINTS
from tolsey.http.chat.answering import AnswerService
from tolsey.http.chat.terms import Terms
from tolsey.http.mcp.opening import opened
from tolsey.http.memory.finding import MemorySearch
from tolsey.http.operators.measures import footing
from tolsey.http.subaddresses.object_storage import AssetHost
from tolsey.http.subaddresses.preview.addresses import PREVIEW_PREFIX
from tolsey.http.subaddresses.preview.proxy import StorefrontPreview
from tolsey.http.subaddresses.table import subaddresses
from tolsey.http.web.context import Service
from tolsey.http.web.edge import ASGIApp
from tolsey.http.webhooks.table import receivers
from tolsey.runtime.decision import Tell
from tolsey.runtime.shards.shard import Shard
from tolsey.service.joining import agents_of, last_alive, prepare_shard
from tolsey.service.parts import Parts
from tolsey.service.timetable import start_timers
from tolsey.settings import Settings
from tolsey.storage.backing import addresses
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.embedded.roles import service_url
from tolsey.storage.limits import Limits
from tolsey.storage.migrate import migrate
from tolsey.storage.reports.pool import Reports
from tolsey.storage.sealing import keys
from tolsey.storage.selling import deals

log = structlog.get_logger()

NDA_PAGE = 200
"""How many deals without an NDA one query of a start reads."""


def now() -> datetime:
    """Tell the wall clock's time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Running:
    """A service that runs: what its routes use, and its application for any ASGI server."""

    service: Service
    app: ASGIApp


Pooled = TypeVar("Pooled", Database, Reports)


async def _opened(stack: AsyncExitStack, pool: Pooled) -> Pooled:
    """Open connections that are closed at the end."""
    await pool.open()
    stack.push_async_callback(pool.close)
    return pool


async def _migrated(settings: Settings, owner_url: str) -> str:
    """Bring the database up to date; answers by which address the service uses it."""
    for name in await migrate(owner_url):
        log.info("migration.applied", name=name)
    return owner_url if settings.database_url is not None else await service_url(owner_url)


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
        heal = partial(_migrated, settings, database_url)
        database_url = await heal()
        database = await _opened(stack, Database(database_url, min_size=2, max_size=20))
        reports = await _opened(stack, Reports(database_url))
        cache = Cache(redis_url)
        stack.push_async_callback(cache.close)
        outside = await adapters(stack, settings, database, clock)
        vault = await keys.open_vault(database, settings)
        parts = Parts(settings, database, vault, outside, clock, reports=reports, heal=heal)
        runtime = await parts.start(stack, runtime_options)
        shard = await prepare_shard(stack, settings, redis_url, parts)
        # Entered below, as the last step; left before its connections close, after all answers have ended.
        membership = await stack.enter_async_context(AsyncExitStack())
        await _trace(stack, settings, parts, shard.id)
        service = Service(
            settings=settings,
            runtime=runtime,
            shard=shard,
            database=database,
            reports=reports,
            cache=cache,
            limits=Limits(cache, sharers=partial(last_alive, shard, settings.lease_seconds)),
            vault=vault,
            commerce=outside.commerce,
            payments=outside.payments,
            seller_accounts=outside.seller_accounts,
            vectors=outside.vectors,
            chat=await _answer_service(stack, Terms.of(settings), parts, shard),
            memory=MemorySearch(database, runtime.ask, clock, parts.embedder),
            agents=agents_of(stack, settings, shard, parts),
            mail=parts.mail,
            status_webhooks=parts.status_webhooks,
            files=parts.files,
            payment_inbox=parts.payments,
            storefronts=outside.storefronts,
            clock=clock,
        )
        app = _application(stack, service, parts)
        # From here on the lease has to be renewed: nothing that holds the event loop may follow.
        await membership.enter_async_context(shard)
        await _draw_up_missing_ndas(parts)
        if timers:
            await start_timers(stack, runtime, database, clock)
        yield Running(service, app)


async def _draw_up_missing_ndas(parts: Parts) -> None:
    """Have listings draw up the NDAs that deals never got, which releases before did in a second commit."""
    after = ""
    while found := await deals.without_nda(parts.database, after, NDA_PAGE):
        after = found[-1].id
        at = parts.clock()
        await parts.runtime.post(
            [
                Tell(listing(one.listing_id), DrawUpNda(deal_id=one.id, at=at), key=f"{one.id}/nda")
                for one in found
            ]
        )


def _application(stack: AsyncExitStack, service: Service, parts: Parts) -> ASGIApp:
    """Make what answers over HTTP, with what the tools of people and agents need."""
    settings = service.settings
    footing.offer(service)
    agents = opened(service)
    service.chat.persons_tools = partial(tools_of, service, agents.server)
    if settings.llm_tools:
        service.chat.tools = service.chat.persons_tools
    preview = StorefrontPreview(service)
    stack.push_async_callback(preview.close)
    assets = AssetHost(settings.cdn_origins)
    stack.push_async_callback(assets.close)
    return create_app(
        service,
        BLUEPRINTS,
        receivers(
            settings,
            parts.runtime,
            parts.directory,
            parts.payments,
            vectors=service.vectors,
            database=service.database,
            vault=service.vault,
            clock=service.clock,
        ),
        mounted={**agents.mounted, PREVIEW_PREFIX: preview},
        hosts=partial(subaddresses, settings, agents=agents.on_subaddress, assets=assets),
        requests=parts.requests,
    )


async def _trace(stack: AsyncExitStack, settings: Settings, parts: Parts, process: str) -> None:
    """Tell a collector what each request causes, where one is set."""
    if settings.otel_exporter_otlp_endpoint is None:
        return
    from tolsey.tracing import tracing  # noqa: PLC0415 - its library is slow to load, and seldom wanted

    telemetry = parts.runtime.telemetry
    endpoint = settings.otel_exporter_otlp_endpoint
    parts.requests.tracing = await stack.enter_async_context(tracing(endpoint, process, telemetry))


async def _answer_service(
    stack: AsyncExitStack, terms: Terms, parts: Parts, shard: Shard
) -> AnswerService:
    """Answer questions with a model."""
    answers = AnswerService(
        parts.model,
        terms,
        parts.runtime.ask,
        parts.database,
        parts.clock,
        post=parts.runtime.post,
        place=partial(parts.runtime.admin.lanes.place, "model"),
        process=shard.id,
    )
    await stack.enter_async_context(answers)
    return answers
