"""The work of the job that erases: deleted stores, and what shops and their customers ask to be forgotten.

What an actor holds is let go by its own turn, before rows are swept beside it: no memory writes back what
was erased. A leg that is done has its receipt, so a run that was cut off goes on behind it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from tolsey.actors.job.effects import Progress, is_cut
from tolsey.actors.job.forgetting.effects import RequestLegs, spares_live
from tolsey.actors.job.uninstalls.effects import UninstalledShops
from tolsey.actors.listing.messages import WithdrawListing, listing
from tolsey.actors.mail import TellPeople
from tolsey.actors.organization.billing.messages import LeaveProcessor
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.stores.messages import CloseStore
from tolsey.actors.ports import CustomerRecords, ErasureList, Vectors
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.connection.messages import LeaveShop
from tolsey.actors.store.messages import store
from tolsey.runtime.throttle import Throttle
from tolsey.storage import audit
from tolsey.storage.commerce import compliance, identities, stores
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import erasure_list
from tolsey.storage.lifecycle.erasure_list import ErasureCause
from tolsey.storage.owners import RowOwner
from tolsey.storage.people import leaving
from tolsey.storage.records.commerce.compliance import (
    LEGS,
    ComplianceRequest,
    PendingStep,
    Receipt,
)
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.sealing.sealed import SealBroken
from tolsey.storage.selling import listings

log = structlog.get_logger()

RETRIED_FOR: Final = timedelta(hours=48 + 1)
"""How long the platform tries a delivery again (rules/shops#webhooks), and the hour between two runs."""


class Erasing(RequestLegs):
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
        super().__init__(
            database,
            ask,
            vectors,
            customers=customers,
            tell=tell,
            throttle=throttle,
            clock=clock,
        )
        self._listed = listed
        self._rehash = rehash
        self._uninstalled = UninstalledShops(database, tell, clock)

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
