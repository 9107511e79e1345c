"""Where everything is put together: the one module that knows every concrete class."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio
import structlog

from tolsey.actors.job.actor import JobActor
from tolsey.actors.job.alerts.effects import FleetSigns, StatusWatch
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.discovery.effects import Discovery
from tolsey.actors.job.effects import CreditKeeping, JobEffects, Upkeep
from tolsey.actors.job.erasing.effects import Erasing
from tolsey.actors.job.messages import Tick, TickOfNewJob, job
from tolsey.actors.job.ticking.effects import LaunchTicks
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.effects import ListingEffects
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.organization.effects import AnswerCalls, EventCalls, PaymentInbox
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.editing.effects import EditCalls
from tolsey.actors.store.effects import StoreEffects
from tolsey.actors.store.imports.effects import OrderImportCalls
from tolsey.actors.store.launch.effects import LaunchCalls
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.provisioning.effects import TransferCalls
from tolsey.actors.store.rehashing.effects import Rehashing
from tolsey.actors.storefront.actor import StorefrontActor
from tolsey.actors.storefront.effects import StorefrontCalls, calibrate
from tolsey.adapters import Adapters, adapters
from tolsey.http.app import create_app
from tolsey.http.assistant.tools import tools_of
from tolsey.http.blueprints import BLUEPRINTS
from tolsey.http.chat.answering import AnswerService
from tolsey.http.chat.terms import Terms
from tolsey.http.deals.asking import DealProviders
from tolsey.http.deals.evidence.rooting import EsignRoots
from tolsey.http.deals.sealing.effects import DocumentSealing
from tolsey.http.files.keeping import FileKeeper
from tolsey.http.launch.writing import LaunchWriter
from tolsey.http.mail.bounces import AddressMarks
from tolsey.http.mail.office import PostOffice
from tolsey.http.mcp.opening import opened
from tolsey.http.memory.embedding import MemoryEmbedder
from tolsey.http.memory.finding import MemorySearch
from tolsey.http.oauth.agents import Agents
from tolsey.http.operators.measures.exposition import ProcessCollector
from tolsey.http.privacy.answering import CustomerAnswers
from tolsey.http.status.telling import StatusLetters
from tolsey.http.stores.exports import ExportWriter
from tolsey.http.subaddresses.object_storage import AssetHost
from tolsey.http.subaddresses.preview.addresses import PREVIEW_PREFIX
from tolsey.http.subaddresses.preview.proxy import StorefrontPreview
from tolsey.http.subaddresses.table import subaddresses
from tolsey.http.web.context import Service
from tolsey.http.web.edge import ASGIApp
from tolsey.http.web.requests import RequestTally
from tolsey.http.webhooks.directory import TELL_SECONDS, ShopDirectory
from tolsey.http.webhooks.table import EVENTS_PATH, receivers
from tolsey.runtime.decision import Tell
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.oversight import Oversight
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.throttle import Throttle
from tolsey.runtime.timers import Timers
from tolsey.settings import Settings
from tolsey.storage.backing import addresses
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.embedded.roles import service_url
from tolsey.storage.lifecycle import retention
from tolsey.storage.limits import Limits
from tolsey.storage.migrate import migrate
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.reports.pool import Reports
from tolsey.storage.runtime import executions, slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.runtime.presence import Presence
from tolsey.storage.runtime.slots import Slots
from tolsey.storage.runtime.streams import Streams
from tolsey.storage.sealing import keys
from tolsey.storage.sealing.sealed import Vault

log = structlog.get_logger()


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
        shard = await _join(stack, settings, redis_url, parts)
        await _trace(stack, settings, parts, shard.id)
        service = Service(
            settings=settings,
            runtime=runtime,
            shard=shard,
            database=database,
            reports=reports,
            cache=cache,
            limits=Limits(cache, sharers=partial(_last_alive, shard, settings.lease_seconds)),
            vault=vault,
            commerce=outside.commerce,
            payments=outside.payments,
            seller_accounts=outside.seller_accounts,
            vectors=outside.vectors,
            chat=await _answer_service(stack, Terms.of(settings), parts, shard),
            memory=MemorySearch(database, runtime.ask, clock, parts.embedder),
            agents=_agents(stack, settings, shard, parts),
            mail=parts.mail,
            files=parts.files,
            payment_inbox=parts.payments,
            storefronts=outside.storefronts,
            clock=clock,
        )
        agents = opened(service)
        if settings.llm_tools:
            service.chat.tools = partial(tools_of, service, agents.server)
        preview = StorefrontPreview(service)
        stack.push_async_callback(preview.close)
        assets = AssetHost(settings.cdn_origins)
        stack.push_async_callback(assets.close)
        app = create_app(
            service,
            BLUEPRINTS,
            receivers(
                settings,
                parts.runtime,
                parts.directory,
                parts.payments,
                vectors=outside.vectors,
                database=database,
                vault=vault,
                clock=clock,
            ),
            mounted={**agents.mounted, PREVIEW_PREFIX: preview},
            hosts=partial(subaddresses, settings, agents=agents.on_subaddress, assets=assets),
            requests=parts.requests,
        )
        if timers:
            await _start_timers(stack, runtime, database, clock)
        yield Running(service, app)


class Parts:
    """The actors and effects of the service, and what they share."""

    runtime: Runtime
    """Set once it is made: it is made with the very effects that ask it."""
    shard: Shard
    """Set once this process has joined the others."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        vault: Vault,
        outside: Adapters,
        clock: Callable[[], datetime],
        *,
        reports: Reports,
        heal: Callable[[], Awaitable[object]],
    ) -> None:
        self._settings = settings
        self._heal = heal
        self.database = database
        self.model = outside.model
        self.vault = vault
        self._outside = outside
        self.clock = clock
        self.requests = RequestTally()
        self.files = FileKeeper(outside.objects, database, vault, settings.base_url, clock)
        self._reports = reports
        self.directory = ShopDirectory(database, vault, clock)
        self.mail = PostOffice(database, vault, outside.mail, settings, clock)
        self.embedder = self._embedder()
        self.payments = PaymentInbox(
            database,
            outside.payments,
            clock,
            price_ids=settings.payment_prices,
            dispatch=self._dispatch,
            form=settings.wire_form,
        )

    def _embedder(self) -> MemoryEmbedder | None:
        """Make what embeds memory, where a model for it is set."""
        model = self._outside.embeddings
        if model is None:
            return None
        prices = Terms.of_embeddings(self._settings)
        return MemoryEmbedder(
            model, prices, ask=self._ask, database=self.database, clock=self.clock
        )

    async def start(self, stack: AsyncExitStack, options: Mapping[str, Any]) -> Runtime:
        """Let the actors live for as long as the stack is open."""
        journal = Journal(self.database)
        stack.push_async_callback(journal.close)
        self.runtime = Runtime(
            self.actors(),
            journal,
            Outbox(self.database),
            partial(slots.versions, self.database),
            handlers=self.handlers(),
            form=self._settings.wire_form,
            clock=self.clock,
            **options,
        )
        return await stack.enter_async_context(self.runtime)

    def actors(self) -> list[Any]:
        """List the kinds of actor."""
        return [
            StoreActor(self.database),
            OrganizationActor(self.database),
            ListingActor(self.database),
            JobActor(self.database),
            StorefrontActor(self.database),
        ]

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say who performs which call."""
        store = StoreEffects(
            ask=self._ask,
            platform=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
            events_url=self._settings.base_url + EVENTS_PATH,
            invalidate=self.directory.invalidate,
        )
        imports = OrderImportCalls(
            ask=self._ask,
            platform=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
        )
        launches = LaunchCalls(
            ask=self._ask,
            platform=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
            storefronts=self._outside.storefronts,
            theme_url=self._settings.launch_theme_url,
            unset_model=self._settings.unset_model,
        )
        writer = LaunchWriter(self.model, Terms.of(self._settings), ask=self._ask, clock=self.clock)
        transfers = TransferCalls(
            ask=self._ask, platform=self._outside.commerce, vault=self.vault, clock=self.clock
        )
        edits = EditCalls(
            ask=self._ask,
            editor=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
        )
        listing_effects = ListingEffects(
            self._outside.commerce,
            self._outside.seller_accounts,
            self.vault,
            self.database,
            self.clock,
        )
        storefronts = StorefrontCalls(
            self._outside.storefronts, self.database, self.clock, self._heal
        )
        sealing = DocumentSealing(self.database, self.vault, self._settings.base_url, self.clock)
        providers = DealProviders(
            self._ask,
            self.database,
            self.vault,
            self.clock,
            envelopes=self._outside.envelopes,
            escrow=self._outside.escrow,
            pays_sellers=self._settings.payments_secret_key is not None,
        )
        written = ExportWriter(self.files, self.database, self._reports, self._ask, self.clock)
        throttle = Throttle(partial(retention.commit, self.database))
        upkeep = Upkeep(self.database, self._post, throttle, self.files.sweep).work()
        keeping = CreditKeeping(
            self.database, self._ask, clock=self.clock, throttle=throttle
        ).work()
        customers = CustomerAnswers(
            self.files, self.database, self._reports, self.vault, self.clock
        )
        erasing = Erasing(
            self.database,
            self._ask,
            self._outside.vectors,
            listed=self._outside.objects,
            rehash=Rehashing(self.database, self.vault).of_shop,
            customers=customers,
            tell=self.mail.tell_people,
            throttle=throttle,
            clock=self.clock,
        ).work()
        payments = {"reconcile-payments": self.payments.reconcile}
        ticks = LaunchTicks(
            self.database, self._post, throttle, reminded_after=PLAYBOOK.reminded_after
        ).work()
        discovery = Discovery(
            self.database,
            self._ask_for,
            queue=self._outside.scan_queue,
            dataset=self._outside.dataset,
            calibrate=partial(calibrate, self.database),
            clock=self.clock,
        ).work()
        letters = StatusLetters(self.database, self._settings, self.mail)
        watch = StatusWatch(self.database, letters, self._fleet_signs, self.clock).work()
        rooting = EsignRoots(self.database, self.vault, self.clock).work()
        upkeep_of_all = {**upkeep, **keeping, **erasing, **payments, **rooting}
        jobs = JobEffects({**upkeep_of_all, **discovery, **ticks, **watch}, self.clock)
        return {
            **store.handlers(),
            **edits.handlers(),
            **imports.handlers(),
            **launches.handlers(),
            **transfers.handlers(),
            **listing_effects.handlers(),
            **jobs.handlers(),
            **ProcessorCalls(self._outside.payments, self.clock).handlers(),
            **EventCalls(self._outside.payments).handlers(),
            **AnswerCalls(self.database).handlers(),
            **self.mail.handlers(),
            **AddressMarks(self.database, self.vault, self.clock).handlers(),
            **(self.embedder.handlers() if self.embedder else {}),
            **writer.handlers(),
            **written.handlers(),
            **sealing.handlers(),
            **providers.handlers(),
            **storefronts.handlers(),
        }

    async def _fleet_signs(self) -> FleetSigns:
        """Gather what the processes of this deployment count together."""
        counted = await self.shard.call_all("agents_refused")
        # A process of the release before counts none of it.
        hits = sum(one for one in counted.values() if isinstance(one, int))
        return FleetSigns(is_cache_there=self.shard.away_seconds == 0, limit_hits=hits)

    async def _ask(self, to: ActorId, message: Message[Any]) -> Any:
        return await self.runtime.ask(to, message)

    async def _ask_for(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        return await self.runtime.ask(to, message, timeout=timeout)

    def _dispatch(self, rows: Sequence[OutboxRow]) -> None:
        self.runtime.dispatch(rows)

    async def _post(self, tells: Sequence[Tell]) -> int:
        return await self.runtime.post(tells)


async def _join(stack: AsyncExitStack, settings: Settings, redis_url: str, parts: "Parts") -> Shard:
    """Take a share of the slots among the processes of this deployment."""
    stored = Slots(parts.database)
    deployment = await stored.deployment()
    presence = Presence(redis_url, deployment)
    stack.push_async_callback(presence.close)
    streams = Streams(redis_url, deployment, parts.vault)
    stack.push_async_callback(streams.close)
    shard = Shard(
        parts.runtime,
        presence,
        stored,
        streams,
        partial(slots.reply_of, parts.database),
        lease_seconds=settings.lease_seconds,
    )
    parts.shard = shard
    _agree(shard, parts)
    return await stack.enter_async_context(shard)


async def _trace(stack: AsyncExitStack, settings: Settings, parts: "Parts", process: str) -> None:
    """Tell a collector what each request causes, where one is set."""
    if settings.otel_exporter_otlp_endpoint is None:
        return
    from tolsey.tracing import tracing  # noqa: PLC0415 - its library is slow to load, and seldom wanted

    telemetry = parts.runtime.telemetry
    endpoint = settings.otel_exporter_otlp_endpoint
    parts.requests.tracing = await stack.enter_async_context(tracing(endpoint, process, telemetry))


def _agree(shard: Shard, parts: "Parts") -> None:
    """Say what the processes tell and ask one another, beside messages to actors."""
    directory = parts.directory

    async def forget_shop(shop_domain: str) -> None:
        directory.forget(shop_domain)

    async def tell_others(shop_domain: str) -> None:
        await shard.call_all("forget_shop", shop_domain, seconds=TELL_SECONDS)

    directory.tell_others = tell_others

    async def refused_deliveries(shop_domain: str) -> dict[str, Any] | None:
        found = directory.refused(shop_domain)
        if found is None:
            return None
        return {"count": found.count, "lastAt": found.last_at.isoformat()}

    shard.operations |= {
        "forget_shop": forget_shop,
        "refused_deliveries": refused_deliveries,
        "agents_refused": parts.requests.agents_refused,
        "metrics": ProcessCollector(parts.runtime, shard, parts.requests).families,
    }
    shard.lost_data.append(directory.forget_all)
    Oversight(shard, parts.runtime).offer()


def _agents(stack: AsyncExitStack, settings: Settings, shard: Shard, parts: "Parts") -> Agents:
    """Guard the stores' endpoints; whom one process lets in, all forget when it ends."""

    async def tell_others() -> None:
        # The name is on the wire: processes of the release before know no other.
        await shard.call_all("forget_guests", seconds=TELL_SECONDS)

    async def forget(payload: Any) -> None:
        del payload
        agents.access_tokens.forget_here()

    agents = Agents.of(settings, parts.database, parts.clock, tell_others)
    stack.push_async_callback(agents.close)
    shard.operations["forget_guests"] = forget
    return agents


def _last_alive(shard: Shard, lease_seconds: float) -> int:
    """Count the processes that are there, or were when Redis was last heard of."""
    silence = shard.away_seconds + lease_seconds
    return sum(one.alive or one.silent_seconds <= silence for one in shard.members())


async def _answer_service(
    stack: AsyncExitStack, terms: Terms, parts: "Parts", shard: Shard
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


async def _start_timers(
    stack: AsyncExitStack, runtime: Runtime, database: Database, clock: Callable[[], datetime]
) -> None:
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    await _catch_up(runtime, database, clock)
    due = {name: known.expression for name, known in JOBS.items()}
    tasks.start_soon(Timers(due, partial(_tick, runtime, clock)).run)


async def _tick(runtime: Runtime, clock: Callable[[], datetime], name: str) -> None:
    """Ask a job for the run of its last due time, which every process does: it runs once.

    So a clock that is ahead makes no run twice, only as early as it is ahead, and one that is behind
    finds that the run has been.
    """
    at = clock()
    due_at = JOBS[name].due_at(at)
    kind = TickOfNewJob if JOBS[name].is_new else Tick
    tick = kind(due_at, new_id("run"), at)
    await runtime.accept(job(name), tick, id=f"tick:{name}:{due_at.isoformat()}")


async def _catch_up(runtime: Runtime, database: Database, clock: Callable[[], datetime]) -> None:
    """Run what came due while no process was there, once; a job that never ran waits its turn."""
    found = await executions.last(database, list(JOBS), trigger="schedule")
    for name, known in JOBS.items():
        last = found[name]
        if last and last[0].scheduled_at < known.due_at(clock()):
            await _tick(runtime, clock, name)
