"""The work of the job that erases: deleted stores, and what shops and their customers ask to be forgotten.

What an actor holds is let go by its own turn, before rows are swept beside it: no memory writes back what
was erased. A leg that is done has its receipt, so a run that was cut off goes on behind it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final

import structlog

from tolsey.actors.job.effects import Progress, is_cut
from tolsey.actors.job.uninstalls.effects import UninstalledShops
from tolsey.actors.listing.messages import WithdrawListing, listing
from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.organization.billing.messages import LeaveProcessor
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.stores.messages import CloseStore
from tolsey.actors.ports import CustomerRecords, ErasureList, Vectors
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.compliance.messages import DestroySalt, ForgetShopProfile, RedactShop
from tolsey.actors.store.connection.messages import LeaveShop, ReadConnection
from tolsey.actors.store.memory.messages import ForgetFact, ForgetMemory, ForgetMessage
from tolsey.actors.store.messages import store
from tolsey.runtime.throttle import Throttle
from tolsey.storage import audit, erasure, erasure_list, exports
from tolsey.storage.chat import embeddings, memory
from tolsey.storage.commerce import compliance, identities, shop_erasure, stores
from tolsey.storage.database import Database
from tolsey.storage.erasure_list import ErasureCause
from tolsey.storage.owners import RowOwner
from tolsey.storage.people import leaving
from tolsey.storage.records.commerce.compliance import (
    LEGS,
    ComplianceRequest,
    ComplianceTopic,
    Leg,
    PendingStep,
    Receipt,
    RequestSource,
)
from tolsey.storage.records.commerce.connection import ConnectionStatus
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.records.memory import MemorySource
from tolsey.storage.sealing.sealed import SealBroken
from tolsey.storage.selling import listings

log = structlog.get_logger()

BY_THE_SERVICE: Final[Mapping[str, Any]] = {"source": MemorySource.MERCHANT, "user_id": "system"}
"""Nobody's words outrank a customer who wants to be forgotten."""

RETRIED_FOR: Final = timedelta(hours=48 + 1)
"""How long the platform tries a delivery again (rules/shops#webhooks), and the hour between two runs."""

Counted = tuple[int, int]
"""How many rows there were before, and after."""
Act = Callable[[ComplianceRequest, str, str], Awaitable[Counted]]


@dataclass(frozen=True, slots=True)
class RequestLeg:
    """A leg or step: what does it for one store, and the queries that its rows are found by."""

    act: Act
    queries: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What its receipts say of the queries."""
        return sha256("\n".join(self.queries).encode()).hexdigest()


def spares_live(request: ComplianceRequest) -> bool:
    """Tell whether a request lets a shop be that is connected."""
    # The platform alone has a shop forgotten that is connected (rules/shops#who-asks).
    is_of_shop = request.topic == ComplianceTopic.SHOP_REDACT
    return is_of_shop and request.source != RequestSource.PLATFORM


class Erasing:
    """Carries erasures out, a batch at a time."""

    def __init__(
        self,
        database: Database,
        ask: Ask,
        vectors: Vectors,
        *,
        listed: ErasureList,
        rehash: Callable[[ShopKey], AsyncGenerator[int]],
        customers: CustomerRecords,
        tell: Callable[[TellPeople], Awaitable[None]],
        throttle: Throttle,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._ask = ask
        self._vectors = vectors
        self._listed = listed
        self._rehash = rehash
        self._records = customers
        self._tell = tell
        self._uninstalled = UninstalledShops(database, tell, clock)
        self._throttle = throttle
        self._clock = clock
        sql = shop_erasure
        self._legs: Mapping[str, RequestLeg] = {
            Leg.ANSWER: RequestLeg(self._answer, exports.queries(RowOwner.BUYER)),
            Leg.CREDENTIALS: RequestLeg(self._credentials, (sql.HASHES, sql.CREDENTIALS)),
            Leg.VECTORS: RequestLeg(self._purge, memory.namespaces_of("$1")),
            Leg.WEBHOOK_ARCHIVE: RequestLeg(self._archive, (sql.ARCHIVE,)),
            Leg.ORDER_FREETEXT: RequestLeg(self._free_text, (sql.FREE_TEXT,)),
            Leg.COPIES: RequestLeg(self._copies, tuple(sql.COPIES.values())),
            Leg.MENTIONS: RequestLeg(self._mentions_of, exports.queries(RowOwner.STORE)),
            Leg.CUSTOMER_ROWS: RequestLeg(self._customers, erasure.findings(RowOwner.BUYER)),
            PendingStep.IDENTITY_HASHES: RequestLeg(self._salt, (sql.SALTS,)),
            PendingStep.HISTORY: RequestLeg(self._history, erasure.findings(RowOwner.SHOP)),
            PendingStep.STORE_RECORD: RequestLeg(self._record, (sql.PROFILE,)),
        }

    def work(self) -> Mapping[str, Callable[[datetime, Progress], Awaitable[Mapping[str, Any]]]]:
        """List it by the job's name."""
        return {"gdpr-erasure": self.run}

    async def run(self, _: datetime, progress: Progress) -> Mapping[str, int]:
        """Erase deleted stores, do what requests want, and count what waits for an operator."""
        counters = {"storesErased": 0, "rowsErased": 0, "requestsCompleted": 0, "requestsFailed": 0}
        for store_id, keys in (
            await stores.to_erase(self._database, self._clock() - stores.REST)
        ).items():
            await self._list(ErasureCause.STORE, store_id)
            await self._sweep_archive(store_id)
            for key in keys:
                counters["rowsErased"] += await self._erase(RowOwner.SHOP, key)
            counters["rowsErased"] += await self._erase(RowOwner.STORE, store_id)
            counters["storesErased"] += 1
            progress(counters)
        counters["usersErased"] = await self._people()
        counters["shopsLeft"] = await self._uninstalled.run()
        for request in await compliance.unfinished(self._database):
            try:
                counters["requestsCompleted"] += await self._work_on(request)
            except Conflict:
                counters["requestsFailed"] += not await self._withdraw(request)
            except Exception as error:
                if is_cut(error):
                    raise
                # The others go on; this one is taken up again where it stands.
                counters["requestsFailed"] += 1
                log.warning("gdpr.erasure_failed", request_id=request.id, why=repr(error))
            progress(counters)
        # A delivery of before may come again, and leaves its trail though nothing of it is kept.
        since = self._clock() - RETRIED_FOR
        for row in await compliance.lately_redacted(self._database, since):
            await self._sweep_archive(row["store_id"], row["shop_domain"], row["email_hash"])
        for id in await compliance.lately_handled(self._database, since):
            await self._list(ErasureCause.REQUEST, id)
        waiting, overdue = await compliance.open_obligations(self._database, self._clock())
        for row in overdue:
            log.error(
                "gdpr.compliance_request.overdue",
                request_id=row["id"],
                topic=row["topic"],
                received_at=row["received_at"].isoformat(),
            )
        return {**counters, "awaitingOperator": waiting, "overdue": len(overdue)}

    async def _people(self) -> int:
        """Erase who asked to go 30 days ago, with what they owned alone; later what of that is kept longer."""
        at = self._clock()
        due = await leaving.users_due(self._database, at)
        for user_id in due:
            await self._list(ErasureCause.USER, user_id)
            for one in await leaving.owned_alone(self._database, user_id):
                for listing_id in await listings.to_withdraw(self._database, one.id):
                    with suppress(Conflict):  # one that somebody buys since is an operator's to end
                        gone = WithdrawListing(at, user_id, owner_goes=True)
                        await self._ask(listing(listing_id), gone)
                for store_id in await leaving.end_organization(self._database, one.id, at):
                    with suppress(NotFound):  # never connected
                        await self._ask(store(store_id), LeaveShop(at, user_id))
                    await self._ask(organization(one.id), CloseStore(store_id, user_id, at))
                # What is left of a subscription ends with the organization (rules/accounts#people-who-leave).
                await self._ask(organization(one.id), LeaveProcessor(at))
            await self._erase(RowOwner.USER, user_id)
        for organization_id in await leaving.organizations_due(self._database, at):
            await self._list(ErasureCause.ORGANIZATION, organization_id)
            await self._erase(RowOwner.ORGANIZATION, organization_id)
        return len(due)

    async def _work_on(self, request: ComplianceRequest) -> bool:
        """Do what is left of a request; answer whether it was completed by that."""
        done = {
            (one.store_id, one.leg)
            for one in await compliance.receipts(self._database, [request.id])
        }
        whose = tuple(zip(request.stores, request.shop_keys, strict=True))
        # What may still be taken back is no erasure before something was done.
        if done or not spares_live(request):
            await self._list(ErasureCause.REQUEST, request.id)
        await self._move_identities(request)
        for store_id, shop_key in whose:
            for leg in LEGS[request.topic]:
                if (store_id, leg) not in done:
                    await self._do(request, leg, store_id, shop_key)
        completed = request.completed_at is None
        if completed:
            await compliance.complete(self._database, request.id, self._clock())
        await self._take_steps(request, done)
        await self._list(ErasureCause.REQUEST, request.id)
        return completed

    async def _take_steps(self, request: ComplianceRequest, done: set[tuple[str, str]]) -> None:
        """Carry out the pending steps that an operator has given the word for, or that wait for nobody."""
        asked = set(request.asked_steps)
        # The machine does this step by itself once no row bears a global digest any more (rules/shops#erasure).
        if PendingStep.IDENTITY_HASHES in request.pending_steps and not (
            await identities.any_older(self._database, request.shop_keys)
        ):
            asked.add(PendingStep.IDENTITY_HASHES)
        for step in request.pending_steps:
            if step not in asked:
                continue
            for store_id, shop_key in zip(request.stores, request.shop_keys, strict=True):
                if (store_id, step) not in done:
                    await self._do(request, step, store_id, shop_key)
            await compliance.step_done(self._database, request.id, step)

    async def _list(self, cause: ErasureCause, id: str) -> None:
        """List outside the database what is erased from it, first: one that is restored is told of it."""
        entry = await erasure_list.entry_of(self._database, cause, id)
        await self._listed.keep_erasure(f"{cause}/{id}", entry)

    async def _withdraw(self, request: ComplianceRequest) -> bool:
        """Take back what the platform did not ask for: the shop is connected, and nothing was done yet."""
        async with self._database.transaction() as tx:
            if not await compliance.withdraw(tx, request):
                return False
            for store_id in request.stores:
                await audit.write(
                    tx, "compliance.withdrawn", store_id, actor="system", request=request.id
                )
        return True

    async def _move_identities(self, request: ComplianceRequest) -> None:
        """Have every row of a request's shops under pseudonyms first: by these its customers are found."""
        if not await identities.any_older(self._database, request.shop_keys):
            return
        for key in request.shop_keys:
            try:
                async with aclosing(self._rehash(ShopKey(key))) as moving:
                    async for _ in self._throttle.steps(moving):
                        pass
            except SealBroken:  # then the step that destroys the salt waits for an operator
                log.warning("gdpr.salt_unopened", request_id=request.id, shop_key=key)

    async def _do(self, request: ComplianceRequest, leg: str, store_id: str, key: str) -> None:
        known = self._legs[leg]
        before, after = await known.act(request, store_id, key)
        receipt = Receipt(
            request_id=request.id,
            store_id=store_id,
            leg=leg,
            rows_before=before,
            rows_after=after,
            at=self._clock(),
            query_digest=known.digest,
        )
        await compliance.keep_receipt(self._database, receipt)

    async def _answer(self, request: ComplianceRequest, store_id: str, key: str) -> Counted:
        """Have what is kept of a customer written down, and tell those who look after the store."""
        kept = await self._records.answer(request, store_id, key)
        if kept is None:
            return 0, 0
        until = self._clock() + compliance.ANSWER_KEPT_FOR
        facts = {
            "store": store_id,
            "name": kept.store_name,
            "shop": request.shop_domain,
            "asked": request.received_at.date().isoformat(),
            "until": until.date().isoformat(),
        }
        call = TellPeople(
            event=MailEvent.DATA_REQUEST_ANSWERED,
            organization_id=kept.organization_id,
            about=f"{request.id}:{store_id}",
            facts=facts,
        )
        await self._tell(call)
        return kept.rows, kept.rows

    async def _credentials(self, request: ComplianceRequest, store_id: str, _: str) -> Counted:
        shop = request.shop_domain
        redact = RedactShop(shop, self._clock(), spares_live=spares_live(request))
        had = await self._ask(store(store_id), redact)
        had += await shop_erasure.count(self._database, shop_erasure.HASHES, store_id, shop)
        await shop_erasure.clear_hashes(self._database, store_id, shop)
        left = await shop_erasure.count(self._database, shop_erasure.CREDENTIALS, store_id, shop)
        return had, left

    async def _purge(self, request: ComplianceRequest, store_id: str, _: str) -> Counted:
        # The memory is the store's: it goes with the shop, but where the platform does not ask for it the shop
        # that the store went to keeps it (rules/shops#who-asks).
        if spares_live(request):
            live = await self._ask(store(store_id), ReadConnection())
            if live is not None and live.status == ConnectionStatus.ACTIVE:
                return 0, 0
        namespaces = memory.namespaces_of(store_id)
        before = await self._vectors.count(namespaces)
        # What they are made of first: else they would be made again.
        before += await self._ask(store(store_id), ForgetMemory(self._clock()))
        await self._vectors.purge(namespaces)
        return before, await self._vectors.count(namespaces)

    async def _archive(self, request: ComplianceRequest, store_id: str, key: str) -> Counted:
        shop = request.shop_domain
        before = after = 0
        for mention in await self._mentions(request, key):
            archive = partial(
                shop_erasure.count, self._database, shop_erasure.ARCHIVE, store_id, shop, mention
            )
            before += await archive()
            await self._sweep_archive(store_id, shop, mention)
            after += await archive()
        return before, after

    async def _sweep_archive(self, store_id: str, shop: str = "", mention: str = "") -> None:
        async for _ in self._throttle.batches(
            partial(shop_erasure.sanitise, self._database, store_id, shop, mention)
        ):
            pass

    async def _free_text(self, _: ComplianceRequest, __: str, key: str) -> Counted:
        before = 0
        async for count in self._throttle.batches(
            partial(shop_erasure.clear_free_text, self._database, key)
        ):
            before += count
        return before, await shop_erasure.count(self._database, shop_erasure.FREE_TEXT, key)

    async def _copies(self, request: ComplianceRequest, store_id: str, key: str) -> Counted:
        before = after = 0
        for customer in await self._mentions(request, key):
            whose = (store_id, request.shop_domain, customer, key)
            for sql in shop_erasure.COPIES.values():
                before += await shop_erasure.count(self._database, sql, *whose)
            await shop_erasure.clear_copies(self._database, *whose)
            for sql in shop_erasure.COPIES.values():
                after += await shop_erasure.count(self._database, sql, *whose)
        return before, after

    async def _mentions_of(self, request: ComplianceRequest, store_id: str, key: str) -> Counted:
        """Forget what names a customer among the words of the shop's people; a listing's are the merchant's to mend."""
        at, before = self._clock(), await self._records.mentions(request, store_id, key)
        for one in before:
            with suppress(NotFound):  # somebody was faster
                match one.table:
                    case "facts":
                        forget = partial(ForgetFact, key=str(one.key))
                        await self._ask(store(store_id), forget(**BY_THE_SERVICE, at=at))
                    case "messages":
                        said = partial(ForgetMessage, message_id=str(one.key))
                        await self._ask(store(store_id), said(**BY_THE_SERVICE, at=at))
                    case "commerce_orders":
                        await shop_erasure.clear_words_of_order(self._database, key, int(one.key))
        await embeddings.forget_left(self._database, store_id)
        return len(before), len(await self._records.mentions(request, store_id, key))

    async def _customers(self, request: ComplianceRequest, _: str, key: str) -> Counted:
        before = after = 0
        for pseudonym in await self._pseudonyms(request, key):
            before += await erasure.left(self._database, RowOwner.BUYER, pseudonym, key)
            await self._erase(RowOwner.BUYER, pseudonym, key)
            after += await erasure.left(self._database, RowOwner.BUYER, pseudonym, key)
        await compliance.redacted(self._database, request.id, key, self._clock())
        return before, after

    async def _mentions(self, request: ComplianceRequest, key: str) -> list[str]:
        """Tell whose words are to go: those of the customers that a request names, or '' for all of a shop's."""
        if request.topic == ComplianceTopic.CUSTOMER_REDACT:
            return await self._pseudonyms(request, key)
        return [""]

    async def _pseudonyms(self, request: ComplianceRequest, key: str) -> list[str]:
        subjects = await compliance.subjects(self._database, request.id)
        return [one.email_hash for one in subjects if one.store_id == key]

    async def _salt(self, request: ComplianceRequest, store_id: str, key: str) -> Counted:
        found = partial(
            shop_erasure.count,
            self._database,
            shop_erasure.SALTS,
            store_id,
            request.shop_domain,
        )
        before = await found()
        await self._ask(store(store_id), DestroySalt(request.shop_domain, key))
        if key == store_id:  # the salt of a store's first shop is the store's own
            await shop_erasure.destroy_salt(self._database, store_id)
        return before, await found()

    async def _history(self, _: ComplianceRequest, __: str, key: str) -> Counted:
        before = await erasure.left(self._database, RowOwner.SHOP, key)
        await self._erase(RowOwner.SHOP, key)
        return before, await erasure.left(self._database, RowOwner.SHOP, key)

    async def _record(self, request: ComplianceRequest, store_id: str, _: str) -> Counted:
        shop = request.shop_domain
        found = partial(shop_erasure.count, self._database, shop_erasure.PROFILE, store_id, shop)
        before = await found()
        await self._ask(store(store_id), ForgetShopProfile(shop, self._clock()))
        return before, await found()

    async def _erase(self, owner: RowOwner, *whose: str) -> int:
        erased = 0

        async def batch(limit: int) -> int:
            return await erasure.erase(self._database, owner, *whose, limit=limit)

        async for count in self._throttle.batches(batch):
            erased += count
        return erased
