"""What each leg and step of a request to forget does for one store (rules/shops#erasure).

What an actor holds is let go by its own turn, before rows are swept beside it: no memory writes back what
was erased.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, Final

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.ports import CustomerRecords, Vectors
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import NotFound
from tolsey.actors.store.compliance.messages import (
    DestroySalt,
    ForgetCheckpointNote,
    ForgetLaunch,
    ForgetShopProfile,
    RedactShop,
)
from tolsey.actors.store.connection.messages import ReadConnection
from tolsey.actors.store.memory.messages import ForgetFact, ForgetMemory, ForgetMessage
from tolsey.actors.store.messages import store
from tolsey.runtime.throttle import Throttle
from tolsey.storage.chat import embeddings, memory
from tolsey.storage.commerce import compliance, shop_erasure
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import erasure, exports
from tolsey.storage.owners import RowOwner
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    Leg,
    PendingStep,
    RequestSource,
)
from tolsey.storage.records.commerce.connection import ConnectionStatus
from tolsey.storage.records.memory import MemorySource

BY_THE_SERVICE: Final[Mapping[str, Any]] = {"source": MemorySource.MERCHANT, "user_id": "system"}
"""Nobody's words outrank a customer who wants to be forgotten."""

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


class RequestLegs:
    """Does the legs of requests, a batch at a time."""

    def __init__(
        self,
        database: Database,
        ask: Ask,
        vectors: Vectors,
        *,
        customers: CustomerRecords,
        tell: Callable[[TellPeople], Awaitable[None]],
        throttle: Throttle,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._ask = ask
        self._vectors = vectors
        self._records = customers
        self._tell = tell
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
            # A step that ended meanwhile has written what the store still held of its launch.
            while not customer and await self._ask(
                store(store_id), ForgetLaunch(request.shop_domain, self._clock())
            ):
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
                    case "launch_milestones":
                        await self._ask(store(store_id), ForgetCheckpointNote(str(one.key), at))
                    case "store_contexts":
                        await shop_erasure.clear_addresses(self._database, store_id, str(one.key))
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
