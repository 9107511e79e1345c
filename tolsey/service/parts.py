"""The kinds of actor and who performs their calls: the one module that knows every concrete class of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from tolsey.actors.job.actor import JobActor
from tolsey.actors.job.alerts.effects import FleetSigns, StatusWatch
from tolsey.actors.job.discovery.effects import Discovery
from tolsey.actors.job.effects import CreditKeeping, JobEffects, Upkeep, Work
from tolsey.actors.job.erasing.effects import Erasing
from tolsey.actors.job.ticking.effects import LaunchTicks
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.effects import ListingEffects
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.messages import list_priced_offers
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
from tolsey.adapters import Adapters
from tolsey.http.chat.terms import Terms
from tolsey.http.deals import papers
from tolsey.http.deals.asking import DealProviders
from tolsey.http.deals.evidence.rooting import EsignRoots
from tolsey.http.deals.owners import OwnerLooks
from tolsey.http.deals.sealing.effects import DocumentSealing
from tolsey.http.files.keeping import FileKeeper
from tolsey.http.launch.writing import LaunchWriter
from tolsey.http.mail.bounces import AddressMarks
from tolsey.http.mail.office import PostOffice
from tolsey.http.memory.embedding import MemoryEmbedder
from tolsey.http.privacy.answering import CustomerAnswers
from tolsey.http.status.telling import StatusLetters
from tolsey.http.status.webhooks import StatusWebhooks
from tolsey.http.stores.exports import ExportWriter
from tolsey.http.web.requests import RequestTally
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.http.webhooks.table import EVENTS_PATH
from tolsey.runtime.clock import Time
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.throttle import Throttle
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.reports.pool import Reports
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault

CallHandlers: TypeAlias = dict[type[Call[Any]], Any]


class Parts:
    """The actors and effects of the service, and what they share."""

    runtime: Runtime
    """Set once it is made: it is made with the very effects that ask it."""
    time: Time
    """Set when the actors start."""
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
        self.status_webhooks = StatusWebhooks(database, vault, settings, clock)
        self.embedder = self._embedder()
        self.payments = PaymentInbox(
            database,
            outside.payments,
            clock,
            offers=list_priced_offers(settings.payment_prices),
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
        self.time = options.get("time") or Time(self.clock)
        journal = Journal(self.database)
        stack.push_async_callback(journal.close)
        self.runtime = Runtime(
            self.actors(),
            journal,
            Outbox(self.database),
            partial(slots.versions, self.database),
            handlers=self.handlers(),
            form=self._settings.wire_form,
            history=self._settings.history_kinds,
            **{**options, "time": self.time},
        )
        return await stack.enter_async_context(self.runtime)

    def actors(self) -> list[Any]:
        """List the kinds of actor."""
        return [
            StoreActor(self.database),
            OrganizationActor(self.database),
            ListingActor(
                self.database,
                partial(papers.nda_writer, self.database, self._settings.base_url),
            ),
            JobActor(self.database),
            StorefrontActor(self.database),
        ]

    def handlers(self) -> CallHandlers:
        """Say who performs which call."""
        return {
            **self._of_stores(),
            **self._of_launches(),
            **self._of_deals(),
            **self._of_money(),
            **self._of_people(),
            **JobEffects(self._work_of_jobs(), self.clock).handlers(),
            **StorefrontCalls(
                self._outside.storefronts, self.database, self.clock, self._heal
            ).handlers(),
        }

    def _of_stores(self) -> CallHandlers:
        store = StoreEffects(
            ask=self._ask,
            platform=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
            events_url=self._settings.base_url + EVENTS_PATH,
            invalidate=self.directory.invalidate,
        )
        edits = EditCalls(
            ask=self._ask,
            editor=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
        )
        imports = OrderImportCalls(
            ask=self._ask,
            platform=self._outside.commerce,
            database=self.database,
            vault=self.vault,
            clock=self.clock,
        )
        written = ExportWriter(self.files, self.database, self._reports, self._ask, self.clock)
        return {
            **store.handlers(),
            **edits.handlers(),
            **imports.handlers(),
            **written.handlers(),
            **(self.embedder.handlers() if self.embedder else {}),
        }

    def _of_launches(self) -> CallHandlers:
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
        return {**launches.handlers(), **writer.handlers(), **transfers.handlers()}

    def _of_deals(self) -> CallHandlers:
        listings = ListingEffects(
            self._outside.commerce,
            self._outside.seller_accounts,
            self.vault,
            self.database,
            self.clock,
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
        owners = OwnerLooks(
            self._ask, self._outside.commerce, self.database, self.vault, self.clock
        )
        return {
            **listings.handlers(),
            **sealing.handlers(),
            **providers.handlers(),
            **owners.handlers(),
        }

    def _of_money(self) -> CallHandlers:
        return {
            **ProcessorCalls(self._outside.payments, self.clock).handlers(),
            **EventCalls(self._outside.payments).handlers(),
            **AnswerCalls(self.database).handlers(),
        }

    def _of_people(self) -> CallHandlers:
        return {
            **self.mail.handlers(),
            **self.status_webhooks.handlers(),
            **AddressMarks(self.database, self.vault, self.clock).handlers(),
        }

    def _work_of_jobs(self) -> dict[str, Work]:
        """Say what each job does, by its name."""
        throttle = Throttle(partial(retention.commit, self.database), self.time)
        upkeep = Upkeep(self.database, self._post, throttle, self.files.sweep)
        keeping = CreditKeeping(self.database, self._ask, clock=self.clock, throttle=throttle)
        erasing = Erasing(
            self.database,
            self._ask,
            self._outside.vectors,
            listed=self._outside.objects,
            rehash=Rehashing(self.database, self.vault).of_shop,
            customers=CustomerAnswers(
                self.files, self.database, self._reports, self.vault, self.clock
            ),
            tell=self.mail.tell_people,
            throttle=throttle,
            clock=self.clock,
        )
        ticks = LaunchTicks(
            self.database, self._post, throttle, reminded_after=PLAYBOOK.reminded_after
        )
        discovery = Discovery(
            self.database,
            self._ask_for,
            queue=self._outside.scan_queue,
            dataset=self._outside.dataset,
            calibrate=partial(calibrate, self.database),
            clock=self.clock,
        )
        letters = StatusLetters(self.database, self._settings, self.mail, self.status_webhooks)
        watch = StatusWatch(self.database, letters, self._fleet_signs, self.clock)
        return {
            **upkeep.work(),
            **keeping.work(),
            **erasing.work(),
            "reconcile-payments": self.payments.reconcile,
            **EsignRoots(self.database, self.vault, self.clock).work(),
            **discovery.work(),
            **ticks.work(),
            **watch.work(),
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
